#!/bin/bash
# CuPy for the A100 SXM4 40 GB (compute capability 8.0) of Narval: a virtual environment.
# Run this script once, on a login node.
# ! Compute nodes do not reach the internet: install on a login node.
# ! Conda is discouraged (anaconda.md 2026-04-10). `avail_wheels torch` lists the site's Python
#   wheels. The site has wheels for its three newest versions of Python. Do not put environments
#   into $SCRATCH, because files in $SCRATCH are deleted.
# Source: ALL python.md 2026-04-12; apptainer.md 2026-04-12
# Also possible here: --kind container.
set -e

# 1. The site's Python.
module load StdEnv/2023 python

# 2. List the site's wheels.
avail_wheels cupy

# 3. Each job installs these packages. These lines try the installation once, in a temporary
#    environment.
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
virtualenv --no-download "$scratch"
source "$scratch/bin/activate"
pip install --no-index --upgrade pip
pip install --no-index cupy jax torchvision matplotlib

# 4. List the installed packages, so that you can install them again.
pip freeze --local > "$HOME/cupy-gpu.lock.txt"

# 5. Check whether the framework is a GPU build that works with the driver.
teho env check --cluster narval --python "$scratch/bin/python"

# Each job needs these lines; `teho plan --env FILE` reads them from the output of --format json:
#   module load StdEnv/2023 python
#   srun -N $SLURM_NNODES -n $SLURM_NNODES bash -e << 'EOF' || exit 1
#   virtualenv --no-download $SLURM_TMPDIR/env
#   source $SLURM_TMPDIR/env/bin/activate
#   pip install --no-index --upgrade pip
#   pip install --no-index -r "$HOME/cupy-gpu.lock.txt"
#   EOF
#   source $SLURM_TMPDIR/env/bin/activate
