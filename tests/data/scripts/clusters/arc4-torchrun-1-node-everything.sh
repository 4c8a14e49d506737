#!/bin/bash -l
# A job for ARC4. Submit it with: qsub FILE

# What it asks for.
#$ -N all
#$ -cwd
#$ -l coproc_v100=4
#$ -l disk=2G
#$ -l h_rt=01:00:00
#$ -o job.log
#$ -j y
#$ -t 1-8
#$ -tc 2
#$ -hold_jid 11,12
#$ -r y

# 90 s before the time limit, a timer sends SIGUSR1 to all of this job's processes:
# the program is to write its checkpoint and end.
told=
trap 'told=yes' USR1
trap 'trap "" TERM; kill 0' EXIT # ends the timer
(sleep 3510 && kill -USR1 0) &

# What every job here needs.
unset GOMP_CPU_AFFINITY KMP_AFFINITY

# The software.
module load anaconda
source activate pytorch-gpu

# Your own lines.
source ~/tools.sh

# As many threads in each process as it has cores.
export OMP_NUM_THREADS=$(((NSLOTS + 3) / 4))

# The data, brought to the node's own disk: $TMPDIR
tar -xf data.tar -C "$TMPDIR" || exit 1
cp -r labels.csv "$TMPDIR" || exit 1

# torchrun itself must not hear the signal, the processes that it starts do.
teho run -- bash -c 'trap "" USR1; exec "$@"' deaf torchrun --standalone --nnodes=1 --nproc_per_node=4 train.py
status=$?
# Exit code 99 queues the job again.
[ -z "$told" ] || exit 99
exit "$status"
