"""Random crops, flips and normalisation of a whole batch of images, on their device."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch

from teho.errors import InputError

__all__ = ["Changes"]


class Changes(NamedTuple):
    """How the images of a batch are changed. All images stay as large as they are."""

    crop_padding: int = 0
    """Pixels of black at each edge, before a random part of the old size is cut out."""
    flip: bool = False
    """Whether left and right change places in half of the images."""
    mean: Sequence[float] | float | None = None
    """Subtracted from each channel, on the scale from 0 to 1 if the images are of type uint8."""
    std: Sequence[float] | float | None = None
    """Each channel is divided by it, on the same scale."""

    def __call__(self, images: Any, key: int) -> Any:
        """Return the changed images.

        Args:
            images: [samples, channels, height, width].
            key: for the same key, the random numbers are the same on one device.

        Raises:
            InputError: the tensor does not have four dimensions.
        """
        if images.dim() != 4:
            raise InputError(
                f"crop_padding, flip, mean or std for a tensor with the shape {list(images.shape)}",
                "images with the shape [samples, channels, height, width] as the first part of a "
                "batch",
            )
        if self.crop_padding or self.flip:
            images = self._moved(images, key)
        if self.mean is not None or self.std is not None:
            images = self._normalised(images)
        return images

    def _moved(self, images: Any, key: int) -> Any:
        """Crop and flip in one read: choose the rows and columns of each image."""
        count, channels, height, width = images.shape
        device, most = images.device, 2 * self.crop_padding + 1
        generator = torch.Generator(device).manual_seed(key)

        def chance(below: int) -> Any:
            return torch.randint(below, (count, 1), device=device, generator=generator)

        rows = torch.arange(height, device=device) + chance(most)
        columns = torch.arange(width, device=device).expand(count, width)
        if self.flip:
            columns = torch.where(chance(2) == 1, width - 1 - columns, columns)
        columns = columns + chance(most)
        padding = (self.crop_padding,) * 4
        padded = torch.nn.functional.pad(images, padding) if self.crop_padding else images
        samples = torch.arange(count, device=device)[:, None, None, None]
        planes = torch.arange(channels, device=device)[None, :, None, None]
        return padded[samples, planes, rows[:, None, :, None], columns[:, None, None, :]]

    def _normalised(self, images: Any) -> Any:
        """Return (image - mean) / std as one product and one sum, in float32."""
        is_float = images.is_floating_point()
        values: tuple[Any, Any] = (self.mean, self.std)
        given = [tuple(map(float, one)) if hasattr(one, "__len__") else one for one in values]
        shift, factor = _line(*given, 1.0 if is_float else 255.0, images.device)
        return torch.addcmul(shift, images if is_float else images.float(), factor)


@cache
def _line(mean: Any, std: Any, scale: float, device: Any) -> tuple[Any, Any]:
    """Return what is added to the pixels, and what they are multiplied by, for each channel."""

    def per_channel(values: Any, default: float) -> Any:
        given = torch.as_tensor(default if values is None else values, dtype=torch.float32)
        return given.reshape(-1, 1, 1).to(device)

    deviation = per_channel(std, 1.0)
    return -per_channel(mean, 0.0) / deviation, 1.0 / (scale * deviation)
