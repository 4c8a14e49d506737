"""Activities recognised by stack, and the rule that reports them."""

from __future__ import annotations

import re

import msgspec
import pytest

from explain.program_parts import (
    NODE,
    awaiting,
    fetch,
    fetching,
    in_worker,
    loader,
    of_library,
    of_python,
    own,
    process,
    seen,
    watched,
    worker,
)
from explain.scenario_parts import NodePart, found, judged
from teho.explain.activities import activities, activity_of, activity_times
from teho.explain.program import program_of
from teho.explain.rules.cpu import debug_mode, known_activity
from teho.model.finding import Certainty, Severity
from teho.model.watched import State

STACKS = {
    "archive_opened": (of_python("zipfile/__init__.py", "ZipFile._RealGetContents"), own("f()")),
    "decompressing": (own("zlib.decompress(raw)"),),
    "images_decoded": (of_library("PIL/ImageFile.py", "ImageFile.load"), own("im.load()")),
    "images_transformed": (of_library("PIL/Image.py", "Image.resize"), own("im.resize((9, 9))")),
    "hdf5_read": (of_library("h5py/_hl/dataset.py", "Dataset.__getitem__"), own("d[i]")),
    "hdf5_opened": (of_library("h5py/_hl/files.py", "File.__init__"), own("h5py.File(path)")),
    "jax_one_by_one": (of_library("jax/_src/dispatch.py", "apply_primitive"), own("x + 1")),
    "objects_copied": (of_python("copy.py", "deepcopy"), own("copy.deepcopy(model)")),
    "logging": (of_python("logging/__init__.py", "StreamHandler.emit"), own("log.info(x)")),
    "synced_writes": (own("os.fsync(f.fileno())"),),
    "dates_parsed": (of_python("_strptime.py", "_strptime"), own("datetime.strptime(a, b)")),
    "text_tables_parsed": (of_library("pandas/io/parsers/readers.py", "read_csv"), own("read(p)")),
    "arrays_joined": (own("np.concatenate([all, new])"),),
    "sparse_changed": (of_library("scipy/sparse/_index.py", "__setitem__"), own("m[i, j] = 1")),
    "patterns_compiled": (of_python("re/_compiler.py", "compile"), own("re.match(p, line)")),
    "garbage_collected": (own("gc.collect()"),),
    "checksums": (own("hashlib.sha256(block)"),),
    "compressing": (of_python("gzip.py", "GzipFile.write"), own("out.write(row)")),
    "compressed_rewound": (
        of_python("_compression.py", "DecompressReader.read"),
        of_python("_compression.py", "DecompressReader.seek"),
        of_python("gzip.py", "GzipFile.seek"),
        own("archive.extractfile(name).read()"),
    ),
    "lists_searched": (own("if name in done:"),),
    "lists_copied": (own("random.sample(list(self.buffer), 64)"),),
    "equations_solved": (own("spsolve(left, right)"),),
    "hdf5_written": (of_library("h5py/_hl/dataset.py", "Dataset.resize"), own("d.resize(n)")),
    "store_opened": (own("lmdb.open(path, readonly=True)"),),
    "database": (own("fetchall()"),),
    "objects_passed": (own("_ForkingPickler.loads(res)"),),
    "manager_asked": (
        of_python("multiprocessing/connection.py", "Connection.recv"),
        of_python("multiprocessing/managers.py", "BaseProxy._callmethod"),
        own("counts[word] += 1"),
    ),
    "predictions_joined": (
        of_library("transformers/trainer_pt_utils.py", "torch_pad_and_concatenate"),
        of_library("transformers/trainer.py", "Trainer.evaluation_loop"),
        own("trainer.train()"),
    ),
    "boosting_evaluated": (
        own("sorted(zip(score, label))", 26, "distance"),
        of_library("xgboost/core.py", "Booster.eval_set"),
        own("xgb.train(settings, rows)"),
    ),
    "text_features": (
        of_library("sklearn/feature_extraction/text.py", "CountVectorizer._count_vocab"),
        own("search.fit(texts, labels)"),
    ),
    "fourier_transforms": (own("np.fft.rfft(trace)"),),
    "jax_compiled_again": (
        of_library("jax/_src/compiler.py", "backend_compile"),
        own("step(weights, batch)"),
    ),
    "tensorflow_traced_again": (
        own("tf.matmul(a, b)", 20, "tf__step"),
        of_library("tensorflow/python/framework/func_graph.py", "func_graph_from_py_func"),
        own("step(x, 3)"),
    ),
    "nnx_graphs": (
        of_library("flax/nnx/graphlib.py", "_graph_flatten"),
        of_library("flax/nnx/extract.py", "to_tree"),
        of_library("flax/nnx/transforms/compilation.py", "JitWrapped.__call__"),
        own("train_step(model, optimizer, x)"),
    ),
    "tensorflow_one_by_one": (
        of_library("tensorflow/python/ops/gen_math_ops.py", "mat_mul"),
        of_library("tensorflow/python/ops/math_ops.py", "matmul"),
        own("tf.matmul(a, b)"),
    ),
    "keras_calls": (
        of_library("tensorflow/python/framework/func_graph.py", "func_graph_from_py_func"),
        of_library("tensorflow/python/data/ops/map_op.py", "_map_v2"),
        of_library(
            "keras/src/trainers/data_adapters/array_data_adapter.py",
            "ArrayDataAdapter.get_tf_dataset",
        ),
        of_library("keras/src/backend/tensorflow/trainer.py", "TFEpochIterator.__init__"),
        own("model.predict(x[None], verbose=0)"),
    ),
    "torch_compiled_again": (
        of_library("torch/_inductor/graph.py", "GraphLowering.run_node"),
        of_library("torch/_dynamo/convert_frame.py", "ConvertFrame.__call__"),
        of_library("torch/_dynamo/eval_frame.py", "OptimizedModule.__call__"),
        own("model(x)"),
    ),
    "numba_typed": (
        of_library("numba/typed/typedlist.py", "List.append"),
        own("values.append(x)"),
    ),
    "arrays_printed": (
        of_library("numpy/_core/arrayprint.py", "_array2string"),
        of_library("numpy/_core/arrayprint.py", "array2string"),
        own("log.debug(f'{x}')"),
    ),
    "progress_shown": (
        of_library("tqdm/std.py", "tqdm.display"),
        of_library("tqdm/std.py", "tqdm.refresh"),
        of_library("tqdm/std.py", "tqdm.set_postfix"),
        own("bar.set_postfix(loss=loss)"),
    ),
    "histograms_logged": (
        of_library("torch/utils/tensorboard/summary.py", "make_histogram"),
        of_library("torch/utils/tensorboard/writer.py", "SummaryWriter.add_histogram"),
        own("writer.add_histogram(name, p, step)"),
    ),
    "metrics_of_each_batch": (
        of_library("torchmetrics/functional/classification/stat_scores.py", "_format"),
        of_library("torchmetrics/metric.py", "Metric._forward_reduce_state_update"),
        of_library("torchmetrics/metric.py", "Metric.forward"),
        own("accuracy(out, y)"),
    ),
    "metrics_computed": (
        of_library("torchmetrics/functional/classification/auroc.py", "_binary_auroc_compute"),
        of_library("torchmetrics/metric.py", "Metric._wrap_compute.<locals>.wrapped_func"),
        own("auroc.compute()"),
    ),
    "metric_loaded": (of_library("evaluate/loading.py", "load"), own("evaluate.load('accuracy')")),
    "metric_fed_one_by_one": (
        of_library("evaluate/module.py", "EvaluationModule.add"),
        own("metric.add(prediction=a, reference=b)"),
    ),
    "lightning_logged": (
        of_library("lightning/pytorch/trainer/connectors/logger_connector/result.py", "log"),
        of_library("lightning/pytorch/core/module.py", "LightningModule.log"),
        own("self.log('loss', loss)"),
    ),
    "environments_made": (
        of_library("gymnasium/envs/registration.py", "make"),
        own("gym.make('CartPole-v1')"),
    ),
    "threads_started": (
        of_python("threading.py", "Event.wait"),
        of_python("threading.py", "Thread.start"),
        own("thread.start()"),
    ),
    "pool_waited_for_each": (
        of_python("multiprocessing/pool.py", "ApplyResult.get"),
        of_python("multiprocessing/pool.py", "Pool.apply"),
        own("pool.apply(f, (x,))"),
    ),
    "asked_repeatedly": (
        of_python("concurrent/futures/_base.py", "Future.done"),
        own("future.done()"),
    ),
    "futures_counted_again": (
        of_python("concurrent/futures/_base.py", "_create_and_install_waiters"),
        of_python("concurrent/futures/_base.py", "wait"),
        own("wait(open, return_when=FIRST_COMPLETED)"),
    ),
    "shared_values_locked": (
        of_python("multiprocessing/sharedctypes.py", "SynchronizedArray.__setitem__"),
        own("counts[i] += 1"),
    ),
    "environments_asked": (
        of_python("multiprocessing/connection.py", "Connection.send"),
        of_library("gymnasium/vector/async_vector_env.py", "AsyncVectorEnv.step_async"),
        own("envs.step(actions)"),
    ),
    "ranks_exchange_objects": (
        of_library("torch/distributed/distributed_c10d.py", "_tensor_to_object"),
        of_library("torch/distributed/distributed_c10d.py", "all_gather_object"),
        own("dist.all_gather_object(parts, result)"),
    ),
    "items_queued": (of_python("queue.py", "Queue.put"), own("queue.put(item)")),
    "weights_copied": (
        of_library("torch/nn/modules/module.py", "Module.load_state_dict.<locals>.load"),
        of_library("torch/nn/modules/module.py", "Module.load_state_dict"),
        own("target.load_state_dict(net.state_dict())"),
    ),
    "weights_averaged": (own("t.data.copy_(tau * p.data + (1 - tau) * t.data)"),),
    "system_asked": (
        of_library("psutil/__init__.py", "Process.memory_full_info"),
        own("process.memory_full_info()"),
    ),
    "retries_awaited": (of_library("tenacity/nap.py", "sleep"), own("fetch(url)")),
    "hub_asked": (
        of_library("huggingface_hub/file_download.py", "hf_hub_download"),
        own("AutoModel.from_pretrained(name)"),
    ),
    "connections_opened": (
        of_python("ssl.py", "SSLSocket.do_handshake"),
        of_library("urllib3/connection.py", "HTTPSConnection.connect"),
        of_library("requests/sessions.py", "Session.request"),
        own("requests.get(url)"),
    ),
    "server_awaited": (
        of_python("socket.py", "SocketIO.readinto"),
        of_python("http/client.py", "HTTPResponse.begin"),
        of_library("requests/sessions.py", "Session.request"),
        own("session.get(url)"),
    ),
    "asyncio_waits": (
        of_python("selectors.py", "EpollSelector.select"),
        of_python("asyncio/base_events.py", "BaseEventLoop._run_once"),
        of_python("asyncio/runners.py", "Runner.run"),
        own("asyncio.run(main())"),
    ),
    "shelf_used": (of_python("shelve.py", "Shelf.__setitem__"), own("db[key] = value")),
    "folder_of_images_listed": (
        of_python("os.py", "_walk"),
        of_library("torchvision/datasets/folder.py", "make_dataset"),
        own("ImageFolder(path)"),
    ),
    "video_sought": (own("video.set(cv2.CAP_PROP_POS_FRAMES, i)"),),
    "video_decoded": (own("self.cap.read()"),),
    "images_converted": (
        of_library("PIL/Image.py", "Image.tobytes"),
        of_library("PIL/Image.py", "Image.__array_interface__"),
        of_library("torchvision/transforms/functional.py", "to_tensor"),
        own("self.transform(image)"),
    ),
    "images_filtered": (own("cv2.GaussianBlur(image, (9, 9), 0)"),),
    "graph_normalised": (
        of_library("torch_geometric/nn/conv/gcn_conv.py", "gcn_norm"),
        of_library("torch_geometric/nn/conv/gcn_conv.py", "GCNConv.forward"),
        own("self.conv1(x, edge_index)"),
    ),
    "graphs_transformed": (
        of_library("torch_geometric/transforms/knn_graph.py", "KNNGraph.forward"),
        own("dataset[i]"),
    ),
    "graphs_batched": (
        of_library("torch_geometric/data/collate.py", "collate"),
        own("Batch.from_data_list(graphs)"),
    ),
    "graphs_sampled": (
        of_library("torch_geometric/sampler/neighbor_sampler.py", "NeighborSampler._sample"),
        own("for batch in loader:"),
    ),
    "tokens_decoded": (
        of_library("transformers/tokenization_utils_tokenizers.py", "TokenizersBackend._decode"),
        of_library("transformers/tokenization_utils_base.py", "PreTrainedTokenizerBase.decode"),
        own("tokenizer.decode(ids)"),
    ),
    "tokens_padded": (
        of_library("transformers/tokenization_utils_base.py", "PreTrainedTokenizerBase.pad"),
        of_library("transformers/data/data_collator.py", "DataCollatorWithPadding.__call__"),
        own("collate(rows)"),
    ),
    "slow_tokenizer": (
        of_library("transformers/models/bert/tokenization_bert.py", "BasicTokenizer.tokenize"),
        of_library("transformers/tokenization_utils.py", "PreTrainedTokenizer.tokenize"),
        own("tokenizer(text)"),
    ),
    "text_tokenised": (
        of_library("transformers/tokenization_utils_fast.py", "_batch_encode_plus"),
        of_library("transformers/tokenization_utils_base.py", "PreTrainedTokenizerBase.__call__"),
        own("tokenizer(text)"),
    ),
    "lengths_measured": (
        of_library("datasets/arrow_dataset.py", "Dataset.__iter__"),
        of_library("transformers/trainer_pt_utils.py", "LengthGroupedSampler.__init__"),
        of_library("transformers/trainer.py", "Trainer.train"),
        own("trainer.train()"),
    ),
    "datasets_hashed": (
        of_library("dill/_dill.py", "save_function"),
        of_library("datasets/utils/_dill.py", "dump"),
        of_library("datasets/fingerprint.py", "Hasher.hash"),
        of_library("datasets/arrow_dataset.py", "Dataset.map"),
        own("data.map(tokenize)"),
    ),
    "datasets_joined": (
        of_library("datasets/arrow_dataset.py", "Dataset.add_item"),
        own("data.add_item(row)"),
    ),
    "datasets_columns": (
        of_library("datasets/formatting/formatting.py", "PythonArrowExtractor.extract_column"),
        of_library("datasets/arrow_dataset.py", "Dataset.__getitem__"),
        own("data['text'][i]"),
    ),
    "datasets_shuffled_rows": (
        of_library("datasets/formatting/formatting.py", "_query_table_with_indices_mapping"),
        of_library("datasets/arrow_dataset.py", "Dataset.__getitem__"),
        own("data[i]"),
    ),
    "datasets_rows": (
        of_library("datasets/formatting/formatting.py", "PythonFormatter.format_row"),
        of_library("datasets/arrow_dataset.py", "Dataset.__getitem__"),
        own("data[i]"),
    ),
    "tensors_loaded": (
        of_library("torch/serialization.py", "_load.<locals>.load_tensor"),
        of_library("torch/serialization.py", "load"),
        own("torch.load(path)"),
    ),
    "generators_seeded": (own("np.random.default_rng(seed)"),),
    "random_drawn": (of_python("random.py", "Random.choices"), own("random.choices(names, k=2)")),
    "distributions_checked": (
        of_library("torch/distributions/constraints.py", "_Simplex.check"),
        of_library("torch/distributions/distribution.py", "Distribution.__init__"),
        of_library("torch/distributions/categorical.py", "Categorical.__init__"),
        own("Categorical(probs=p)"),
    ),
    "distributions_used": (
        of_library("torch/distributions/normal.py", "Normal.log_prob"),
        own("policy.log_prob(action)"),
    ),
    "jacobian_by_rows": (
        own("(w @ x).tanh()", 20, "f"),
        of_library("torch/autograd/functional.py", "jacobian"),
        own("jacobian(f, x)"),
    ),
    "weights_updated": (
        of_library("torch/optim/adam.py", "_single_tensor_adam"),
        of_library("torch/optim/adam.py", "Adam.step"),
        own("optimizer.step()"),
    ),
    "modules_walked": (
        of_library("torch/nn/modules/module.py", "Module.named_modules"),
        of_library("torch/nn/modules/module.py", "Module.parameters"),
        own("for p in model.parameters():"),
    ),
    "replicas_made": (
        of_library("torch/nn/parallel/replicate.py", "replicate"),
        of_library("torch/nn/parallel/data_parallel.py", "DataParallel.forward"),
        own("model(x)"),
    ),
    "weights_offloaded": (
        of_library("accelerate/utils/offload.py", "load_offloaded_weight"),
        of_library("accelerate/hooks.py", "AlignDevicesHook.pre_forward"),
        own("model(x)"),
    ),
    "steps_of_cells": (
        of_library("torch/nn/modules/rnn.py", "LSTMCell.forward"),
        own("self.cell(x[t], state)"),
    ),
    "weights_parametrised": (
        of_library("torch/nn/utils/parametrizations.py", "_SpectralNorm.forward"),
        of_library("torch/nn/utils/parametrize.py", "ParametrizationList.forward"),
        own("model(x)"),
    ),
    "activations_recomputed": (
        own("self.layer(x)", 20, "forward"),
        of_library("torch/utils/checkpoint.py", "_checkpoint_hook.__init__.<locals>.unpack_hook"),
        of_library("torch/autograd/graph.py", "_engine_run_backward"),
        own("loss.backward()"),
    ),
    "pipeline_of_single_inputs": (
        of_library("torch/nn/modules/linear.py", "Linear.forward"),
        of_library("transformers/pipelines/base.py", "Pipeline.run_single"),
        own("pipe(text)"),
    ),
    "episodes_rendered": (
        of_library("gymnasium/envs/classic_control/cartpole.py", "CartPoleEnv.render"),
        of_library("gymnasium/core.py", "Wrapper.render"),
        own("env.render()"),
    ),
    "settings_read": (
        of_library("omegaconf/dictconfig.py", "DictConfig.__getattr__"),
        own("cfg.model.size"),
    ),
    "types_checked": (of_library("typeguard/_functions.py", "check_argument_types"), own("f(x)")),
    "callers_inspected": (of_python("inspect.py", "getframeinfo"), own("inspect.stack()")),
    "warnings_formatted": (of_python("traceback.py", "format_stack"), own("f(x)")),
    "tensorflow_small_calls": (
        of_library("tensorflow/core/function/polymorphism/function_type.py", "FunctionType.bind"),
        of_library(
            "tensorflow/python/eager/polymorphic_function/tracing_compilation.py", "call_function"
        ),
        own("step(x)"),
    ),
    "dataset_loaded_again": (
        of_library("datasets/builder.py", "DatasetBuilder.as_dataset"),
        of_library("datasets/load.py", "load_dataset"),
        own("load_dataset('csv', data_files=path)"),
    ),
    "samples_drawn": (of_python("random.py", "Random.sample"), own("random.sample(memory, 64)")),
    "generation_rules": (
        of_library("transformers/generation/logits_process.py", "_get_ngrams"),
        of_library("transformers/generation/utils.py", "GenerationMixin.generate"),
        own("model.generate(**inputs)"),
    ),
    "features_joined": (own("torch.cat([up, skip], dim=1)"),),
    "elements_read": (own("labels[i].item()"),),
    "layers_made": (
        of_library("torch/nn/init.py", "kaiming_uniform_"),
        of_library("torch/nn/modules/linear.py", "Linear.__init__"),
        own("nn.Linear(9, 9)", 20, "forward"),
    ),
    "datasets_mapped_by_row": (
        of_library("datasets/formatting/formatting.py", "PythonFormatter.format_column"),
        of_library("datasets/formatting/formatting.py", "LazyRow.format"),
        own("len(row['text'])", 20, "measure"),
        of_library("datasets/arrow_dataset.py", "Dataset._map_single"),
        own("data.map(measure)"),
    ),
    "datasets_mapped_alone": (
        own("text.lower()", 20, "clean"),
        of_library("datasets/arrow_dataset.py", "Dataset._map_single"),
        own("data.map(clean)"),
    ),
}


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_has_its_activity(name):
    activity = activity_of(seen(STACKS[name], 1.0))
    assert activity is not None
    assert activity.name == name


NOT = {
    # The generator of the bar is below each wait for data.
    "progress_shown": (
        of_library("torch/utils/data/_utils/collate.py", "default_collate"),
        of_library("tqdm/std.py", "tqdm.__iter__"),
        own("for x in tqdm(loader):"),
    ),
    # The wrapper calls `map`.
    "datasets_hashed": (
        of_library("datasets/arrow_writer.py", "ArrowWriter.write"),
        of_library("datasets/fingerprint.py", "fingerprint_transform.<locals>._f.<locals>.wrapper"),
        own("data.map(tokenize)"),
    ),
    # One long call of `fit` takes its batches here.
    "keras_calls": (
        of_library("keras/src/trainers/epoch_iterator.py", "EpochIterator.__next__"),
        of_library("keras/src/backend/jax/trainer.py", "JAXTrainer.fit"),
        own("model.fit(x, y)"),
    ),
    # The compiled code runs.
    "nnx_graphs": (
        of_library("flax/nnx/graphlib.py", "UpdateContextManager.update_context_manager_wrapper"),
        own("train_step(model)"),
    ),
    "torch_compiled_again": (
        of_library("torch/_inductor/output_code.py", "CompiledFxGraph.__call__"),
        of_library("torch/_inductor/compile_fx.py", "fw_compiler_freezing.<locals>.wrapper"),
        own("model(x)"),
    ),
    "tensorflow_one_by_one": (
        of_library("tensorflow/python/eager/execute.py", "quick_execute"),
        own("step(x)"),
    ),
    # Wrappers also call the environment.
    "episodes_rendered": (
        of_library("gymnasium/envs/classic_control/cartpole.py", "CartPoleEnv.step"),
        of_library("gymnasium/wrappers/rendering.py", "RecordVideo.step"),
        own("env.step(action)"),
    ),
    "features_joined": (own("torch.cat([all, new])"),),
    # On a GPU, one such call in each step waits for the loss.
    "elements_read": (own("losses[-1].item()"),),
    # A batch of a map has its columns as lists.
    "datasets_columns": (
        of_library("datasets/formatting/formatting.py", "PythonFormatter.format_column"),
        of_library("datasets/formatting/formatting.py", "LazyBatch.format"),
        own("tokenize(batch['text'])"),
    ),
    # Each optimizer names its steps for the profiler.
    "tracing_tools": (
        of_library("torch/autograd/profiler.py", "record_function.__enter__"),
        of_library("torch/optim/optimizer.py", "Optimizer.profile_hook_step.<locals>.wrapper"),
        own("optimizer.step()"),
    ),
    # Printing the loss waits for the GPU here.
    "arrays_printed": (of_library("torch/_tensor_str.py", "_str_intern"), own("print(loss)")),
    "weights_updated": (of_library("torch/optim/adam.py", "_fused_adam"), own("opt.step()")),
    "video_decoded": (own("captions.read()"),),
}


@pytest.mark.parametrize("name", NOT)
def test_a_stack_that_only_looks_like_an_activity(name):
    activity = activity_of(seen(NOT[name], 1.0))
    assert activity is None or activity.name != name


@pytest.mark.parametrize("name", ["futures_counted_again", "asked_repeatedly", "items_queued"])
def test_waiting_for_threads_that_compute_is_no_overhead_of_python(name):
    activity = activity_of(seen(STACKS[name], 1.0, State.THREADS))
    assert activity is None or activity.name != name


@pytest.mark.parametrize(
    "text",
    ["loss.backward()", "model(x)", "x = a @ b", "np.linalg.solve(a, b)", "total += value"],
)
def test_the_main_work_is_no_activity(text):
    assert activity_of(seen((own(text),), 1.0)) is None


def test_a_library_function_below_the_program_counts_only_if_it_may():
    inner = own("slow(x)", 50, "feature")
    below = of_library("pandas/core/apply.py", "Apply.apply_standard")
    assert activity_of(seen((inner, below, own("df.apply(feature)")), 1.0)).name == (
        "function_per_row"
    )
    # The image library that called the program back does not decode.
    back = of_library("PIL/Image.py", "Image.resize")
    assert activity_of(seen((inner, back, own("im.resize(s)")), 1.0)) is None


def test_an_idle_worker_does_not_pass_objects():
    frames = (of_python("multiprocessing/connection.py", "Connection._recv"), own("pool.map(f, x)"))
    assert activity_of(seen(frames, 1.0, State.PROCESS)) is None
    assert activity_of(seen(frames, 1.0, State.NATIVE)).name == "objects_passed"


def test_threads_that_pass_tasks_are_told_from_waiting_for_results():
    frames = (of_python("multiprocessing/pool.py", "IMapIterator.next"), own("pool.imap(f, x)"))
    assert activity_of(seen(frames, 1.0, State.LOCK)) is None
    assert activity_of(seen(frames, 1.0, State.THREADS)).name == "tasks_passed"


def test_jax_without_jit_is_told_from_waiting_for_compiled_code():
    frames = (of_library("jax/_src/numpy/ufunc_api.py", "ufunc.__call__"), own("a * b + c"))
    assert activity_of(seen(frames, 1.0)).name == "jax_one_by_one"
    # The compiled functions that it called before still compute, in other threads.
    assert activity_of(seen(frames, 1.0, State.THREADS)) is None


def test_an_import_of_a_library_is_none_of_its_activities():
    frames = (
        of_library("torchmetrics/__init__.py", "<module>"),
        of_python("<frozen importlib._bootstrap>", "_call_with_frames_removed"),
        own("import torchmetrics"),
    )
    assert activity_of(seen(frames, 1.0)).name == "imported_again"


def test_a_loop_over_a_list_is_no_search():
    assert activity_of(seen((own("for one in names:"),), 1.0)) is None


def test_names_are_unique_and_patterns_are_valid():
    names = [one.name for one in activities()]
    assert len(names) == len(set(names))
    for one in activities():
        assert one.files or one.calls
        assert one.advice.endswith(".")
        assert 0 <= one.regain[0] <= one.regain[1] <= 1
        for pattern in (*one.files, *one.calls):
            re.compile(pattern)


class TestTimes:
    @staticmethod
    def of(*processes):
        main = program_of(processes).mains[0]
        return {one.activity.name: one for one in activity_times(main)}

    def test_of_the_main_thread(self):
        times = self.of(process(seen(STACKS["checksums"], 30.0)))
        assert times["checksums"].wall_s == 30.0
        assert not times["checksums"].in_others

    def test_waiting_for_workers_is_divided_by_what_they_do(self):
        inner = (
            of_library("PIL/ImageFile.py", "ImageFile.load"),
            own("im.load()", 20, "__getitem__"),
        )
        busy = seen((*inner, *worker_frames()), 45.0)
        other = fetching(15.0, worker_frames())
        times = self.of(
            process(awaiting(40.0), loaders=[loader(num_workers=2)]),
            worker(busy, other, pid=11),
            worker(busy, other, pid=12),
        )
        assert times["images_decoded"].wall_s == pytest.approx(30.0)
        assert times["images_decoded"].in_others

    def test_a_pool_of_threads_passes_no_tasks(self):
        frames = (of_python("multiprocessing/pool.py", "IMapIterator.next"), own("pool.imap(f)"))
        main = process(seen(frames, 60.0, State.THREADS), progress=())
        child = process(pid=11, parent_pid=10, wall_s=60.0, progress=(), began_s=110.0)
        assert "tasks_passed" not in self.of(main)
        assert self.of(main, child)["tasks_passed"].wall_s == 60.0

    def test_workers_of_a_search_on_several_cores_count(self):
        search = of_library("sklearn/model_selection/_search.py", "BaseSearchCV.fit")
        wait = (of_library("joblib/parallel.py", "Parallel._retrieve"), search, own("s.fit(x, y)"))
        main = process(seen(wait, 90.0, State.SLEEPING), progress=())
        loop = of_library("joblib/externals/loky/process_executor.py", "_process_worker")
        counts = seen((STACKS["text_features"][0], loop), 60.0)
        child = process(counts, pid=11, parent_pid=10, progress=(), began_s=101.0)
        times = self.of(main, child)
        assert times["text_features"].wall_s == pytest.approx(54.0)
        assert times["text_features"].in_others

    def test_what_is_usual_in_the_set_up_does_not_count_there(self):
        stack = seen(STACKS["archive_opened"], 30.0)
        assert "archive_opened" not in self.of(process(stack, set_up=(stack,)))
        assert self.of(process(stack))["archive_opened"].wall_s == 30.0

    def test_without_steps_the_first_quarter_is_set_up(self):
        stack = seen(STACKS["archive_opened"], 20.0)
        early = process(stack, progress=(), parts=((stack,), (), (), ()))
        assert "archive_opened" not in self.of(early)


def worker_frames():
    return (*fetch(), *in_worker())


class TestRule:
    @staticmethod
    def made(name, wall_s, *, used=4.0, **facts):
        one = process(seen(STACKS.get(name) or name, wall_s), **facts)
        return watched(one, parts=[NodePart(NODE, cores=8, cores_used=used)])

    @pytest.mark.parametrize(("wall_s", "count"), [(9.9, 0), (10.0, 1)])
    def test_threshold_of_overhead(self, wall_s, count):
        assert len(judged(known_activity, self.made("objects_copied", wall_s))) == count

    @pytest.mark.parametrize(
        ("wall_s", "severity"),
        [(29.9, None), (30.0, Severity.REMARK), (60.0, Severity.CRITICAL)],
    )
    def test_thresholds_of_work(self, wall_s, severity):
        findings = judged(known_activity, self.made("images_decoded", wall_s))
        assert [one.severity for one in findings] == ([severity] if severity else [])

    def test_without_steps_it_may_be_the_purpose_of_the_program(self):
        for name in ("hdf5_read", "images_decoded"):
            finding = found(known_activity, self.made(name, 90.0, progress=()))
            assert finding.severity is Severity.REMARK
            assert finding.certainty is Certainty.POSSIBLE
            assert finding.regain_percent is None

    @pytest.mark.parametrize(("wall_s", "count"), [(29.9, 0), (30.0, 1)])
    def test_in_a_training_it_is_a_loss_from_its_own_share_on(self, wall_s, count):
        findings = judged(known_activity, self.made("hdf5_read", wall_s))
        assert [one.severity for one in findings] == [Severity.WARNING] * count

    def test_anomaly_detection_shows_as_tracebacks_and_has_a_rule_of_its_own(self):
        frames = (of_python("traceback.py", "format_stack"), own("model(x)"))
        main = process(seen(frames, 40.0), torch={"anomaly": True})
        assert judged(known_activity, watched(main)) == []
        finding = found(debug_mode, watched(main))
        assert finding.regain_percent == (32.0, 40.0)
        other = process(seen(frames, 40.0))
        assert found(known_activity, watched(other)).sentence.startswith("Warnings and tracebacks")

    def test_sentence_and_advice(self):
        finding = found(known_activity, self.made("archive_opened", 55.0))
        assert finding.sentence == (
            "Opening an archive and reading its table of contents took 55 % of the time, at "
            "train.py:12."
        )
        assert finding.action.startswith("Open the archive once in each process")
        assert finding.regain_percent == (pytest.approx(38.5), 55.0)

    @pytest.mark.parametrize(("wall_s", "count"), [(39.0, 0), (41.0, 1)])
    def test_a_pattern_that_healthy_lines_match_counts_from_its_own_share(self, wall_s, count):
        assert len(judged(known_activity, self.made("lists_searched", wall_s))) == count

    @pytest.mark.parametrize(("compiles", "count"), [(5, 0), (6, 1)])
    def test_jax_compiles_again_only_if_a_function_was_compiled_often(self, compiles, count):
        facts = {"functions": {"step": {"compiles": compiles, "compile_s": 40.0}}}
        one = process(seen(STACKS["jax_compiled_again"], 40.0))
        one = msgspec.structs.replace(one, libraries={"jax": facts})
        assert len(judged(known_activity, watched(one))) == count

    @pytest.mark.parametrize(("used", "count"), [(5.9, 1), (6.0, 0)])
    def test_waiting_counts_only_if_cores_are_idle(self, used, count):
        run = (of_python("subprocess.py", "Popen.wait"), own("subprocess.run(argv)"))
        made = self.made(run, 50.0, used=used)
        assert len(judged(known_activity, made)) == count
