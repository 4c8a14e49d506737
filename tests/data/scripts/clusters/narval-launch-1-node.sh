#!/bin/bash
# A job for Narval. Submit this script with: sbatch FILE

# The request. The amounts of memory, GPUs and disk are for each node.
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=12
#SBATCH --mem=496G
#SBATCH --gpus-per-node=a100:4
#SBATCH --time=1:00:00
#SBATCH --signal=B:USR1@60
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

# The name of this cluster, for `teho launch`.
export TEHO_CLUSTER=narval
# srun gives each task this number of cores. srun does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# 60 s before the time limit, Slurm sends a signal to this shell, and this shell sends
# the signal to the program. The program should then write its checkpoint and end. This shell then queues the job again.
ending() {
  trap '' USR1
  kill -USR1 "$program"
  wait "$program"
  status=$?
  scontrol requeue "$SLURM_JOB_ID"
  exit "$status"
}
trap ending USR1

# The program runs once for each GPU. `teho launch` gives each task its rank, cores, threads and caches.
srun teho launch -- python train.py &
program=$!
wait "$program"
