#!/bin/bash
# A job for Mahti. Submit this script with: sbatch FILE

# The request. The amounts of memory, GPUs and disk are for each node.
#SBATCH --account=project_2001234
#SBATCH --partition=gpusmall
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=32
#SBATCH --gres=gpu:a100:2
#SBATCH --time=1:00:00
#SBATCH --no-requeue

# The software.
module purge
module load pytorch

# Each process uses one thread for each of its cores.
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# srun gives each task this number of cores. srun does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# srun starts the program as a job step, so Slurm measures what the program uses.
srun python3 myprog.py --epochs 3
