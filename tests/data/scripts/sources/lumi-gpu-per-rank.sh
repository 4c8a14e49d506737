#!/bin/bash
# A job for LUMI. Submit this script with: sbatch FILE

# The request. The amounts of memory, GPUs and disk are for each node.
#SBATCH --account=project_462000123
#SBATCH --partition=standard-g
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --mem=480G
#SBATCH --gpus-per-node=8
#SBATCH --gpus-per-task=1
#SBATCH --time=1:00:00
#SBATCH --no-requeue

# The software.
module purge
module use /appl/local/laifs/modules
module load lumi-aif-singularity-bindings
export SIF=/appl/local/laifs/containers/lumi-multitorch-latest.sif

# Each process uses one thread for each of its cores.
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# srun gives each task this number of cores. srun does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# All processes connect to the first node. The port depends on the job's number.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT

# Bind each task to the cores nearest to its GPU. For this, the job must have whole nodes.
CPU_BIND=mask_cpu:0x00fe000000000000,0xfe00000000000000,0x0000000000fe0000,0x00000000fe000000,0x00000000000000fe,0x000000000000fe00,0x000000fe00000000,0x0000fe0000000000

# The program runs once for each GPU. The rank is known only inside the job step.
srun --cpu-bind="$CPU_BIND" singularity run $SIF bash -c '
  export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
  exec "$@"' rank python train.py
