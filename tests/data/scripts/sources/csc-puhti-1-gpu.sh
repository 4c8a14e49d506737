#!/bin/bash
# A job for Puhti. Submit it with: sbatch FILE

# The request. Memory, GPUs and disk are for each node.
#SBATCH --account=project_2001234
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=10
#SBATCH --mem=64G
#SBATCH --gres=gpu:v100:1
#SBATCH --time=1:00:00
#SBATCH --no-requeue

# The software.
module purge
module load pytorch

# One thread for each core of a process.
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# srun gives each task this number of cores. It does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# The program, as a step: Slurm counts what the program uses.
srun python3 myprog.py --epochs 3
