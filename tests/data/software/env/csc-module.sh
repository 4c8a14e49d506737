#!/bin/bash
# TensorFlow for the Tesla V100-SXM2-32GB (compute capability 7.0) of Puhti: the cluster's module.
# Run this script once, on a login node.
# ! Puhti is retired; its successor is roihu.
# ! /projappl/project_2001234 is an example: set your project's directory with `--place DIR`.
# ! The old versions are no longer supported; MPI and Horovod are not expected to work with them.
#   It is not documented whether 2.11 and later have Horovod.
# ! Modules already bring CUDA and cuDNN. The site discourages conda environments (conda.md
#   2025-08-15); tykky packs an environment into one file. The driver was 515.105.01 on 2023-06-14
#   (gpu-ml.md). By 2026 it was newer, because the modules of 2026 have CUDA 12.2 (apps/jax.md).
# Source: CSC apps/tensorflow.md 2026-07-08 (default 2.18); old versions: the page before
# 2026-06-29; Horovod: the page of 2022-10-10; CSC python-usage-guide.md 2026-06-29; tykky.md
# 2026-07-31
# Also possible here: --kind container or --kind venv.
set -e

# 1. The site's module, which includes CUDA. Versions: 2.18, 2.17, 2.15, 2.14, 2.13, 2.12, 2.11,
#    2.10, 2.9, 2.8; the first is the default.
module purge
module load tensorflow/2.12

# 2. List the packages in it.
pip list

# 3. List the installed packages, so that you can install them again.
pip freeze > tensorflow-gpu.lock.txt

# 4. Check whether the framework is a GPU build that works with the driver.
teho env check --cluster puhti tensorflow-gpu.lock.txt

# Each job needs these lines; `teho plan --env FILE` reads them from the output of --format json:
#   module purge
#   module load tensorflow/2.12
