#!/bin/bash
# CuPy 14 with CUDA 12.9 and Python 3.14 for the L40S (compute capability 8.9) of Aire: a
# container.
# Run this script once, on a login node.
#
# This is the newest version that fits, according to conda-forge/cupy-feedstock 0d4a99c
# (2026-06-01) and its history.
#   Not CuPy 14 with CUDA 13.2: this build needs driver 580 or newer, but the driver of the nodes
#   is not known.
# ! Aire does not document the version of its driver. Of the builds that fit, the build for CUDA
#   12 works with the oldest drivers. Run nvidia-smi in a job, and plan again with `--driver
#   VERSION`.
# ! Anaconda must not be used.
# ! CONDA_OVERRIDE_CUDA makes conda act as if this machine had a GPU. The variable is set only for
#   this command. In ~/.bashrc, the variable would hide that a node has no GPU.
# Source: AIRE dependency_management.md 2025-11-18, job_example.md 2026-04-17,
# software/tools/apptainer.md 2025-11-18
# Also possible here: --kind conda.
set -e

# 1. The tool that builds containers.
module load apptainer

# 2. The recipe: conda-forge's packages, for the driver of the compute nodes (CUDA 12.0).
cat > cupy-gpu.def << 'EOF'
Bootstrap: docker
From: mambaorg/micromamba

%post
    export CONDA_OVERRIDE_CUDA=12.0
    micromamba create -q -y -p /opt/env --override-channels -c conda-forge python=3.14 'cupy=14.*'
    micromamba clean -q -a -y

%environment
    export PATH=/opt/env/bin:$PATH
EOF

# 3. The container: one file.
apptainer build "$HOME/cupy-gpu.sif" cupy-gpu.def

# 4. List the installed packages, so that you can install them again.
apptainer exec "$HOME/cupy-gpu.sif" micromamba env export -p /opt/env --explicit > cupy-gpu.lock.txt

# 5. Check whether the framework is a GPU build that works with the driver.
teho env check --cluster aire cupy-gpu.lock.txt

# Each job needs these lines; `teho plan --env FILE` reads them from the output of --format json:
#   module load apptainer
#   apptainer exec --nv "$HOME/cupy-gpu.sif" python train.py
