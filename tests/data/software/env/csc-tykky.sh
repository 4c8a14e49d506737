#!/bin/bash
# JAX 0.9 with CUDA 12.9 and Python 3.14 for the GH200 (compute capability 9.0) of Roihu: a
# container.
# Run this script once, on a login node.
#
# This is the newest version that fits, according to conda-forge/jaxlib-feedstock 9123295
# (2026-04-23) and its history.
#   Not JAX 0.10 to 0.11: conda-forge has no version newer than 0.9.
# ! Planned for gh200. Roihu also has l40: `--gpu-type TYPE` plans for another type.
# ! The driver version is from the documentation: CSC ml-multi.md 2026-08-20 (its nvidia-smi);
#   seen on 2026-08-17.
# ! /projappl/project_2001234 is an example: set your project's directory with `--place DIR`.
# ! Modules already bring CUDA and cuDNN. The site discourages conda environments (conda.md
#   2025-08-15); tykky packs an environment into one file. GPU nodes are ARM: make environments on
#   roihu-gpu.csc.fi.
# ! CONDA_OVERRIDE_CUDA makes conda act as if this machine had a GPU. The variable is set only for
#   this command. In ~/.bashrc, the variable would hide that a node has no GPU.
# Source: CSC python-usage-guide.md 2026-06-29; tykky.md 2026-07-31
# Also possible here: --kind module or --kind venv.
set -e

# 1. tykky itself.
module purge
module load tykky

# 2. The list of packages to install.
cat > jax-gpu.yml << 'EOF'
channels:
  - conda-forge
dependencies:
  - "python=3.14"
  - "jaxlib=0.9.*=cuda*"
  - "jax"
  - "cuda-version=12"
  - "optax"
EOF

# 3. The environment, for the driver of the compute nodes (CUDA 13.2).
mkdir -p "/projappl/project_2001234/jax-gpu"
CONDA_OVERRIDE_CUDA=13.2 conda-containerize new --mamba --prefix "/projappl/project_2001234/jax-gpu" jax-gpu.yml

# 4. List the installed packages, so that you can install them again.
{ echo @EXPLICIT; "/projappl/project_2001234/jax-gpu/bin/python" -c 'import json, pathlib, sys; records = pathlib.Path(sys.prefix, "conda-meta").glob("*.json"); print(*sorted(json.loads(one.read_text())["url"] for one in records), sep="\n")'; } > jax-gpu.lock.txt

# 5. Check whether the framework is a GPU build that works with the driver.
teho env check --cluster roihu jax-gpu.lock.txt

# Each job needs these lines; `teho plan --env FILE` reads them from the output of --format json:
#   export PATH="/projappl/project_2001234/jax-gpu/bin":"$PATH"
