#!/bin/bash
# A job for Puhti. Submit this script with: sbatch FILE

# The request. The amounts of memory, GPUs and disk are for each node.
#SBATCH --account=project_2001234
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=40
#SBATCH --mem=372G
#SBATCH --gres=gpu:v100:4
#SBATCH --time=2:00:00
#SBATCH --no-requeue

# The software.
module purge
module load pytorch

# Each process uses one thread for each of its cores.
export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / 4))
# srun gives each task this number of cores. srun does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# torchrun runs once on each node, and starts a process for each GPU.
srun torchrun --standalone --nnodes=1 --nproc_per_node=4 train.py
