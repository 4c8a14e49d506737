#!/bin/bash
# PyTorch for the MI250X, one GCD (gfx90a) of LUMI: a container.
# Run this script once, on a login node.
# ! /project/project_462000123 is an example: set your project's directory with `--place DIR`.
# ! Pull request #315 of the user guide (2026-08) names a newer module, Local-LAIF. The older
#   module is singularity-AI-bindings in /appl/local/containers/ai-modules. If you bind paths by
#   hand for several nodes, bind these paths:
#   /var/spool/slurmd,/opt/cray,/usr/lib64/libcxi.so.1,/pfs.
# ! Containers are made for LUMI's ROCm driver and its network, and are not portable. Install your
#   own packages into a virtual environment with --system-site-packages. It is best to pack this
#   environment into one file with mksquashfs.
# Source: CSC ml-multi.md 2026-08-20; AIG 2026-05-19; AIG 02-setting-up-environment 2026-05-19
set -e

# 1. The site's container.
module purge
module use /appl/local/laifs/modules
module load lumi-aif-singularity-bindings
export SIF=/appl/local/laifs/containers/lumi-multitorch-latest.sif

# 2. List the packages in it.
singularity run $SIF pip list

# 3. Your own packages, in addition to the container's: a virtual environment in one file, because
#    thousands of small files are slow on Lustre.
singularity run $SIF python -m venv --system-site-packages pytorch-gpu
singularity run $SIF bash -c 'source pytorch-gpu/bin/activate && pip install optuna'
mksquashfs pytorch-gpu "/project/project_462000123/pytorch-gpu.sqsh" -processors 1 -no-xattrs
rm -r pytorch-gpu

# 4. The job finds your own packages with this variable.
export SINGULARITYENV_PREPEND_PATH=/user-software/bin

# 5. List the installed packages, so that you can install them again.
singularity run -B "/project/project_462000123/pytorch-gpu.sqsh":/user-software:image-src=/ $SIF pip freeze > pytorch-gpu.lock.txt

# 6. Check whether the framework is a GPU build that works with the driver.
teho env check --cluster lumi pytorch-gpu.lock.txt

# Each job needs these lines; `teho plan --env FILE` reads them from the output of --format json:
#   module purge
#   module use /appl/local/laifs/modules
#   module load lumi-aif-singularity-bindings
#   export SIF=/appl/local/laifs/containers/lumi-multitorch-latest.sif
#   export SINGULARITYENV_PREPEND_PATH=/user-software/bin
#   singularity run -B "/project/project_462000123/pytorch-gpu.sqsh":/user-software:image-src=/ $SIF python train.py
