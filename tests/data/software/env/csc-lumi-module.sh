#!/bin/bash
# TensorFlow for the MI250X, one GCD (gfx90a) of LUMI: the cluster's module.
# Run this script once, on a login node.
# ! /project/project_462000123 is an example: set your project's directory with `--place DIR`.
# ! Containers are made for LUMI's ROCm driver and its network, and are not portable. Install your
#   own packages into a virtual environment with --system-site-packages. It is best to pack this
#   environment into one file with mksquashfs.
# Source: CSC apps/tensorflow.md 2026-07-08; AIG 02-setting-up-environment 2026-05-19
set -e

# 1. The site's module, which includes ROCm. Versions: 2.16, 2.12, 2.11, 2.10, 2.9, 2.8; the first
#    is the default.
module purge
module use /appl/local/csc/modulefiles/
module load tensorflow

# 2. List the packages in it.
pip list

# 3. List the installed packages, so that you can install them again.
pip freeze > tensorflow-gpu.lock.txt

# 4. Check whether the framework is a GPU build that works with the driver.
teho env check --cluster lumi tensorflow-gpu.lock.txt

# Each job needs these lines; `teho plan --env FILE` reads them from the output of --format json:
#   module purge
#   module use /appl/local/csc/modulefiles/
#   module load tensorflow
