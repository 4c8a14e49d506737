#!/bin/bash
# PyTorch 2.14 with CUDA 13.2 for the GH200 (compute capability 9.0) of Roihu: a virtual
# environment.
# Run this script once, on a login node.
#
# This is the newest version that fits, according to PyTorch RELEASE.md, release compatibility
# matrix and CUDA support matrix, as of PyTorch 2.14 (2026-09); Python 3.15 is experimental.
# ! Planned for gh200. Roihu also has l40: `--gpu-type TYPE` plans for another type.
# ! The driver version is from the documentation: CSC ml-multi.md 2026-08-20 (its nvidia-smi);
#   seen on 2026-08-17.
# ! Modules already bring CUDA and cuDNN. The site discourages conda environments (conda.md
#   2025-08-15); tykky packs an environment into one file. GPU nodes are ARM: make environments on
#   roihu-gpu.csc.fi.
# Source: CSC python-usage-guide.md 2026-06-29; tykky.md 2026-07-31
# Also possible here: --kind module or --kind container.
set -e

# 1. A Python interpreter.
module load python-data

# 2. A virtual environment.
python3 -m venv /projappl/p1/pytorch-gpu
source /projappl/p1/pytorch-gpu/bin/activate
pip install --upgrade pip

# 3. PyTorch's wheels for CUDA 13.2. uv finds their address.
pip install uv
uv pip install --torch-backend=cu132 'torch==2.14.*'

# 4. List the installed packages, so that you can install them again.
pip freeze > pytorch-gpu.lock.txt

# 5. Check whether the framework is a GPU build that works with the driver.
teho env check --cluster roihu pytorch-gpu.lock.txt

# Each job needs these lines; `teho plan --env FILE` reads them from the output of --format json:
#   module load python-data
#   source /projappl/p1/pytorch-gpu/bin/activate
