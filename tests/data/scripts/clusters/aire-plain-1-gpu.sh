#!/bin/bash
# A job for Aire. Submit it with: sbatch FILE

# The request. Memory, GPUs and disk are for each node.
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=85G
#SBATCH --gres=gpu:1
#SBATCH --time=1:00:00
#SBATCH --no-requeue

# The software.
module load miniforge

# One thread for each core of a process.
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# srun gives each task this number of cores. It does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# The program, as a step: Slurm counts what the program uses.
srun python train.py
