#!/bin/bash
# PyTorch for the Tesla V100-SXM2-32GB (compute capability 7.0) of Puhti: the cluster's module.
# Run this script once, on a login node.
# ! Puhti is retired; its successor is roihu.
# ! /projappl/project_2001234 is an example: set your project's directory with `--place DIR`.
# ! Horovod was removed in 2.1 (2023-11-17). It is not documented whether 1.13 and 2.0 have
#   Horovod.
# ! Modules already bring CUDA and cuDNN. The site discourages conda environments (conda.md
#   2025-08-15); tykky packs an environment into one file. The driver was 515.105.01 on 2023-06-14
#   (gpu-ml.md). By 2026 it was newer, because the modules of 2026 have CUDA 12.2 (apps/jax.md).
# Source: CSC apps/pytorch.md 2026-07-08 (default 2.9); ml-multi.md 2026-08-20; Horovod: the page
# of 2022-09, before 1d92f3e3d; CSC python-usage-guide.md 2026-06-29; tykky.md 2026-07-31
# Also possible here: --kind container or --kind venv.
set -e

# 1. The site's module, which includes CUDA. Versions: 2.9, 2.7, 2.6, 2.5, 2.4, 2.3, 2.1, 2.0,
#    1.13, 1.12, 1.11; the first is the default.
module purge
module load pytorch

# 2. List the packages in it.
pip list

# 3. Your own packages, in addition to the module's.
python3 -m venv --system-site-packages "/projappl/project_2001234/pytorch-gpu"
source "/projappl/project_2001234/pytorch-gpu/bin/activate"
pip install whatshap

# 4. List the installed packages, so that you can install them again.
pip freeze > pytorch-gpu.lock.txt

# 5. Check whether the framework is a GPU build that works with the driver.
teho env check --cluster puhti pytorch-gpu.lock.txt

# Each job needs these lines; `teho plan --env FILE` reads them from the output of --format json:
#   module purge
#   module load pytorch
#   source "/projappl/project_2001234/pytorch-gpu/bin/activate"
