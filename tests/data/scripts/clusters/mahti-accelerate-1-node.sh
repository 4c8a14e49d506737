#!/bin/bash
# A job for Mahti. Submit this script with: sbatch FILE

# The request. The amounts of memory, GPUs and disk are for each node.
#SBATCH --account=<project>
#SBATCH --partition=gpusmall
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=64
#SBATCH --gres=gpu:a100:2
#SBATCH --time=1:00:00
#SBATCH --no-requeue

# The software.
module purge
module load pytorch

# Each process uses one thread for each of its cores.
export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / 2))
# srun gives each task this number of cores. srun does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# All processes connect to the first node. The port depends on the job's number.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT

# accelerate runs once on each node, and starts a process for each GPU.
srun accelerate launch --multi_gpu --num_processes=2 --num_machines=1 --main_process_port="$MASTER_PORT" train.py
