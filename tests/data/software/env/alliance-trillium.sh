#!/bin/bash
# PyTorch for the H100 SXM5 80 GB (compute capability 9.0) of Trillium: a virtual environment.
# Run this script once, on a login node.
# ! Compute nodes do not reach the internet: install on a login node.
# ! Make environments on a login node, in $HOME. Jobs can read $HOME, but cannot write to it.
#   Conda is discouraged (anaconda.md 2026-04-10).
# Source: ALL trillium_quickstart.md 2026-05-17; python.md 2026-04-12; apptainer.md 2026-04-12
# Also possible here: --kind container.
set -e

# 1. The site's Python.
module load StdEnv/2023 cuda/12.6 python/3.11.5

# 2. List the site's wheels.
avail_wheels torch

# 3. A virtual environment with these wheels.
virtualenv --no-download "$HOME/pytorch-gpu"
source "$HOME/pytorch-gpu/bin/activate"
pip install --no-index --upgrade pip
pip install --no-index torch

# 4. List the installed packages, so that you can install them again.
pip freeze --local > pytorch-gpu.lock.txt

# 5. Check whether the framework is a GPU build that works with the driver.
teho env check --cluster trillium --python "$HOME/pytorch-gpu/bin/python"

# Each job needs these lines; `teho plan --env FILE` reads them from the output of --format json:
#   module load StdEnv/2023 cuda/12.6 python/3.11.5
#   source "$HOME/pytorch-gpu/bin/activate"
