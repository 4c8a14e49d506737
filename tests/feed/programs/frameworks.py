"""Arrays of JAX and of TensorFlow: `python frameworks.py jax`."""

import sys
import warnings

import torch

from teho.errors import InputError
from teho.feed import kept, resident
from teho.feed.arrays import arrays_of


def check_jax():
    import jax.numpy as jnp

    x, y = jnp.arange(12.0).reshape(6, 2), jnp.arange(6)
    tensors = arrays_of((x, y)).leaves
    pointers = [array.unsafe_buffer_pointer() for array in (x, y)]
    assert [tensor.data_ptr() for tensor in tensors] == pointers, "the memory is shared"
    batch = next(iter(resident((x, y), 4)))
    assert batch[0].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    back = jnp.from_dlpack(batch[0])
    assert back.sum() == 28
    assert back.unsafe_buffer_pointer() == batch[0].data_ptr(), "without a copy"


def check_tensorflow():
    import tensorflow as tf

    arrays = {"x": tf.reshape(tf.range(12.0), (6, 2)), "y": tf.range(6)}
    stream = tf.data.Dataset.from_tensor_slices(arrays)
    # TensorFlow does not tell the address of a tensor: DLPack does, and does not copy.
    addresses = [torch.from_dlpack(array).data_ptr() for array in arrays.values()]
    tensors = arrays_of(arrays).leaves
    assert [tensor.data_ptr() for tensor in tensors] == addresses, "the memory is shared"
    for dataset in (arrays, stream):
        check_batch(next(iter(resident(dataset, 4))))
    # The samples do not fit: each batch is loaded.
    kept.free_host_bytes = lambda: 8
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        feeds = [resident(stream, 4, rank=rank, world_size=2) for rank in range(2)]
    assert "teho.feed.resident loads each batch: the samples need more than" in str(caught[0])
    rows = [row for feed in feeds for batch in feed for row in batch["y"].tolist()]
    assert sorted(rows) == [0, 1, 2, 3, 4, 5]
    with warnings.catch_warnings(record=True):
        check_batch(next(iter(resident(stream, 4))))
        try:
            resident(stream, 4, shuffle=True)
        except InputError as error:
            assert "shuffle=True with a dataset that has only __iter__" in str(error)  # noqa: PT017 - no pytest
        else:
            raise AssertionError("the order would not be random")


def check_batch(batch):
    assert isinstance(batch["x"], torch.Tensor)
    assert batch["x"].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert batch["y"].tolist() == [0, 1, 2, 3]


{"jax": check_jax, "tensorflow": check_tensorflow}[sys.argv[1]]()
