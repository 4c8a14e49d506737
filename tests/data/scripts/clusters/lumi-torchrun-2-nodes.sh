#!/bin/bash
# A job for LUMI. Submit this script with: sbatch FILE

# The request. The amounts of memory, GPUs and disk are for each node.
#SBATCH --account=project_462000123
#SBATCH --partition=standard-g
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=56
#SBATCH --mem=480G
#SBATCH --gpus-per-node=8
#SBATCH --time=1:00:00
#SBATCH --no-requeue

# The software.
module purge
module use /appl/local/laifs/modules
module load lumi-aif-singularity-bindings
export SIF=/appl/local/laifs/containers/lumi-multitorch-latest.sif

# Each process uses one thread for each of its cores.
export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / 8))
# srun gives each task this number of cores. srun does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# Settings for the communication between the nodes, and the cache folders of each node.
export FI_MR_CACHE_MONITOR="userfaultfd"
export MIOPEN_CUSTOM_CACHE_DIR="/tmp/miopen-cache-$USER"
export MIOPEN_USER_DB_PATH="/tmp/miopen-config-$USER"
srun --nodes="$SLURM_NNODES" --ntasks="$SLURM_NNODES" --ntasks-per-node=1 \
  mkdir -p "/tmp/miopen-cache-$USER" "/tmp/miopen-config-$USER"

# All processes connect to the first node. The port depends on the job's number.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT

# torchrun runs once on each node, and starts a process for each GPU.
srun teho run -- singularity run $SIF torchrun --nnodes="$SLURM_NNODES" --nproc_per_node=8 \
  --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d --rdzv_endpoint="$MASTER_ADDR:$MASTER_PORT" \
  train.py
