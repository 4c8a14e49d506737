#!/bin/bash
# A job for Mahti. Submit it with: sbatch FILE

# The request. Memory, GPUs and disk are for each node.
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

# One thread for each core of a process.
export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / 2))
# srun gives each task this number of cores. It does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# The processes connect to the first node, to a port that depends on the job's number.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT

# accelerate, once on each node; it starts a process for each GPU.
srun accelerate launch --multi_gpu --num_processes=2 --num_machines=1 --main_process_port="$MASTER_PORT" train.py
