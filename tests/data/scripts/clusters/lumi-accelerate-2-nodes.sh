#!/bin/bash
# A job for LUMI. Submit it with: sbatch FILE

# The request. Memory, GPUs and disk are for each node.
#SBATCH --account=project_462000123
#SBATCH --partition=standard-g
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=56
#SBATCH --mem=480G
#SBATCH --gpus-per-node=8
#SBATCH --time=1:00:00
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append

# The software.
module purge
module use /appl/local/laifs/modules
module load lumi-aif-singularity-bindings
export SIF=/appl/local/laifs/containers/lumi-multitorch-latest.sif

# One thread for each core of a process.
export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / 8))
# srun gives each task this number of cores. It does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# Communication between the nodes, and the caches of each node.
export FI_MR_CACHE_MONITOR="userfaultfd"
export MIOPEN_CUSTOM_CACHE_DIR="/tmp/miopen-cache-$USER"
export MIOPEN_USER_DB_PATH="/tmp/miopen-config-$USER"
srun --nodes="$SLURM_NNODES" --ntasks="$SLURM_NNODES" --ntasks-per-node=1 \
  mkdir -p "/tmp/miopen-cache-$USER" "/tmp/miopen-config-$USER"

# The processes connect to the first node, to a port that depends on the job's number.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT

# 120 s before the time limit, Slurm sends a signal to this shell, and this shell sends
# it to the program. The program should then write its checkpoint and end. Then the job is queued again.
ending() {
  trap '' USR1
  kill -USR1 "$program"
  wait "$program"
  status=$?
  scontrol requeue "$SLURM_JOB_ID"
  exit "$status"
}
trap ending USR1

# accelerate, once on each node; it starts a process for each GPU.
# The launcher ignores the signal. The processes that it starts get the signal.
srun singularity run $SIF bash -c '
  trap "" USR1
  exec accelerate launch --multi_gpu \
    --num_processes=16 --num_machines="$SLURM_NNODES" \
    --machine_rank="$SLURM_NODEID" \
    --main_process_ip="$MASTER_ADDR" --main_process_port="$MASTER_PORT" \
    "$@"' accelerate train.py &
program=$!
wait "$program"
