#!/bin/bash
# JAX 0.9 with CUDA 12.9 and Python 3.14 for the L40S (compute capability 8.9) of Aire: an
# environment of conda.
# Run this script once, on a login node.
#
# This is the newest version that fits, according to conda-forge/jaxlib-feedstock 9123295
# (2026-04-23) and its history.
#   Not JAX 0.10 to 0.11: conda-forge has no version newer than 0.9.
# ! Anaconda must not be used.
# ! CONDA_OVERRIDE_CUDA makes conda act as if this machine had a GPU. The variable is set only for
#   this command. In ~/.bashrc, the variable would hide that a node has no GPU.
# Source: AIRE dependency_management.md 2025-11-18, job_example.md 2026-04-17,
# software/tools/apptainer.md 2025-11-18
# Also possible here: --kind container.
set -e

# 1. The environment, for the driver of the compute nodes (CUDA 12.8). The build string stops
#    conda from installing a CPU-only build.
CONDA_OVERRIDE_CUDA=12.8 micromamba create -n jax-gpu --override-channels -c conda-forge python=3.14 'jaxlib=0.9.*=cuda*' jax

# 2. List the installed packages, so that you can install them again.
micromamba env export -n jax-gpu --explicit > jax-gpu.lock.txt

# 3. Check whether the framework is a GPU build that works with the driver.
teho env check --cluster aire jax-gpu.lock.txt

# Each job needs these lines; `teho plan --env FILE` reads them from the output of --format json:
#   eval "$(micromamba shell hook --shell bash)"
#   micromamba activate jax-gpu
