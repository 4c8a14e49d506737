#!/bin/bash
# PyTorch 2.13 with CUDA 12.9 and Python 3.13 for the Tesla V100 (compute capability 7.0) of ARC4:
# an environment of conda.
# Run this script once, on a login node.
#
# This is the newest version that fits, according to conda-forge/pytorch-cpu-feedstock 74dd3d46
# (2026-08-13) and its history.
#   Not PyTorch 2.14: conda-forge has no version newer than 2.13.
#   Not PyTorch 2.13 with CUDA 13.0: this build has no code for Tesla V100 (compute capability
#   7.0).
# ! ARC4 is retired; its successor is aire.
# ! The driver version is from the documentation: ARC software/compilers/anaconda.md 2024-02-26,
#   usage/conda-containers.md 2024-03-14; seen on 2024-02-26.
# ! ~/.conda fills the home directory. So the page says to move ~/.conda to /nobackup/$USER, and
#   to leave a link in the home directory.
# ! CONDA_OVERRIDE_CUDA makes conda act as if this machine had a GPU. The variable is set only for
#   this command. In ~/.bashrc, the variable would hide that a node has no GPU.
# Source: ARC software/compilers/anaconda.md 2024-02-26, usage/conda-containers.md 2024-03-14;
# TUTORIAL
# Also possible here: --kind container.
set -e

# 1. conda itself.
module load anaconda

# 2. The environment, for the driver of the compute nodes (CUDA 12.0). The build string stops
#    conda from installing a CPU-only build.
CONDA_OVERRIDE_CUDA=12.0 conda create -n pytorch-gpu --override-channels -c conda-forge python=3.13 'pytorch=2.13.*=cuda*' 'cudnn<9.11'

# 3. List the installed packages, so that you can install them again.
conda list -n pytorch-gpu --explicit --md5 > pytorch-gpu.lock.txt

# 4. Check whether the framework is a GPU build that works with the driver.
teho env check --cluster arc4 pytorch-gpu.lock.txt

# Each job needs these lines; `teho plan --env FILE` reads them from the output of --format json:
#   module load anaconda
#   source activate pytorch-gpu
