#!/bin/bash
# TensorFlow 2.19 with CUDA 12.8 and Python 3.12 for the Tesla V100 (compute capability 7.0) of
# ARC4: an environment of conda.
# Run this script once, on a login node.
#
# This is the newest version that fits, according to conda-forge/tensorflow-feedstock 2cc3b12
# (2026-01-30) and its history.
#   Not TensorFlow 2.20 to 2.21: conda-forge has no version newer than 2.19.
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
CONDA_OVERRIDE_CUDA=12.0 conda create -n tensorflow-gpu --override-channels -c conda-forge python=3.12 'tensorflow=2.19.*=cuda*' 'cudnn<9.11'

# 3. List the installed packages, so that you can install them again.
conda list -n tensorflow-gpu --explicit --md5 > tensorflow-gpu.lock.txt

# 4. Check whether the framework is a GPU build that works with the driver.
teho env check --cluster arc4 tensorflow-gpu.lock.txt

# Each job needs these lines; `teho plan --env FILE` reads them from the output of --format json:
#   module load anaconda
#   source activate tensorflow-gpu
