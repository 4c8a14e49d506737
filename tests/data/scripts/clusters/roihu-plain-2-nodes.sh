#!/bin/bash
# A job for Roihu. Submit it with: sbatch FILE

# What it asks for; memory, GPUs and disk are those of each node.
#SBATCH --partition=gpularge
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=288
#SBATCH --gres=gpu:gh200:4
#SBATCH --time=1:00:00
#SBATCH --no-requeue

# As many threads in each process as it has cores.
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# srun gives a task the cores that this says, not those of the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# The program, once, on the first node; it starts the rest itself.
./solver input
