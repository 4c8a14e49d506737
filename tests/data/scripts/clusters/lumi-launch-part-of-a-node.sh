#!/bin/bash
# A job for LUMI. Submit this script with: sbatch FILE

# The request. The amounts of memory, GPUs and disk are for each node.
#SBATCH --account=project_462000123
#SBATCH --partition=small-g
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=7
#SBATCH --mem=240G
#SBATCH --gpus-per-node=4
#SBATCH --time=1:00:00
#SBATCH --no-requeue

# The software.
module purge
module use /appl/local/laifs/modules
module load lumi-aif-singularity-bindings
export SIF=/appl/local/laifs/containers/lumi-multitorch-latest.sif

# The name of this cluster, for `teho launch`.
export TEHO_CLUSTER=lumi
# srun gives each task this number of cores. srun does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# The program runs once for each GPU. `teho launch` gives each task its rank, cores, threads and caches.
srun teho launch -- singularity run $SIF python train.py
