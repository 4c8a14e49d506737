#!/bin/bash
# A job for Roihu. Submit this script with: sbatch FILE

# The request. The amounts of memory, GPUs and disk are for each node.
#SBATCH --account=<project>
#SBATCH --partition=gpularge
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=288
#SBATCH --gres=gpu:gh200:4
#SBATCH --time=1:00:00
#SBATCH --no-requeue

# Each process uses one thread for each of its cores.
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# srun gives each task this number of cores. srun does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# The program runs once, on the first node. The program itself starts the other tasks.
./solver input
