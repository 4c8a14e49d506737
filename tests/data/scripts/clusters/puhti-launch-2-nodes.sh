#!/bin/bash
# A job for Puhti. Submit this script with: sbatch FILE

# The request. The amounts of memory, GPUs and disk are for each node.
#SBATCH --account=project_2001234
#SBATCH --partition=gpu
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=10
#SBATCH --mem=372G
#SBATCH --gres=gpu:v100:4
#SBATCH --time=2:00:00
#SBATCH --no-requeue

# The software.
module purge
module load pytorch

# The name of this cluster, for `teho launch`.
export TEHO_CLUSTER=puhti
# srun gives each task this number of cores. srun does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# The program runs once for each GPU. `teho launch` gives each task its rank, cores, threads and caches.
srun teho launch -- python train.py
