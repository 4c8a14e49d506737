#!/bin/bash
# A job for Narval. Submit it with: sbatch FILE

# The request. Memory, GPUs and disk are for each node.
#SBATCH --job-name=all
#SBATCH --account=def-someuser
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=12
#SBATCH --mem=496G
#SBATCH --gpus-per-node=a100:4
#SBATCH --time=1:00:00
#SBATCH --output=job.log
#SBATCH --array=1-8%2
#SBATCH --dependency=afterok:11:12
#SBATCH --signal=B:USR1@90
#SBATCH --requeue
#SBATCH --open-mode=append

# The software.
module load StdEnv/2023 python
srun -N $SLURM_NNODES -n $SLURM_NNODES bash -e << EOF || exit 1
virtualenv --no-download $SLURM_TMPDIR/env
source $SLURM_TMPDIR/env/bin/activate
pip install --no-index torch
EOF
source $SLURM_TMPDIR/env/bin/activate

# Your own lines.
source ~/tools.sh

# One thread for each core of a process.
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# srun gives each task this number of cores. It does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# Copy the data to each node's local disk: $SLURM_TMPDIR
srun --nodes="$SLURM_NNODES" --ntasks="$SLURM_NNODES" --ntasks-per-node=1 \
  tar -xf data.tar -C "$SLURM_TMPDIR" || exit 1
srun --nodes="$SLURM_NNODES" --ntasks="$SLURM_NNODES" --ntasks-per-node=1 \
  cp -r labels.csv "$SLURM_TMPDIR" || exit 1

# The processes connect to the first node, to a port that depends on the job's number.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT

# 90 s before the time limit, Slurm sends a signal to this shell, and this shell sends
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

# The program, once for each GPU; a rank is known only inside the step.
srun teho run -- bash -c '
  export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
  exec "$@"' rank python train.py &
program=$!
wait "$program"
