#!/bin/sh
# Starts Teho's recorder for the job of this script on this node, in the background.
# It prints nothing and ends with 0, so it can be Slurm's TaskProlog or Grid Engine's prolog.
# `teho always` wrote it.
case ${SLURM_JOB_ID:+${SLURM_STEP_ID:-batch}} in
batch | 429496729?) job=$SLURM_JOB_ID ;;
'') job=${JOB_ID:+$JOB_ID.${SGE_TASK_ID-}} ;;
*) exit 0 ;; # a step: the recorder of the batch script records it
esac
case ${TEHO_ALWAYS-}/${TEHO_RECORDER:+other}/$job in
off/* | */other/* | */ | *[!0-9a-z./]*) exit 0 ;;
esac
mark=/tmp/teho-always-$job
if [ "${1-}" != detached ]; then
    trap 'exit 0' EXIT
    # Slurm kills the process group of a TaskProlog at its end, and waits for its output.
    [ -e "$mark" ] || setsid sh -c '"$0" detached &' "$0" </dev/null >/dev/null 2>&1
    exit 0
fi
# The link leads to a folder in /proc while the recorder runs. Links of earlier jobs lead nowhere.
find /tmp -maxdepth 1 -name 'teho-always-*' -xtype l -user "$(id -u)" -delete </dev/null 2>/dev/null
ln -sn "/proc/$$" "$mark" 2>/dev/null || exit 0
trap : TERM HUP INT QUIT ALRM USR1 USR2 # Slurm may send them to all processes of a job
unset PYTHONHOME PYTHONPATH
@VARIABLES@export TEHO_RECORDER="$job"
said=$(@COMMAND@ record-job </dev/null 2>&1 >/dev/null)
status=$?
if [ "$status" = 0 ]; then
    rm -f "$mark"
    exit 0
fi
# It failed, and would fail again: the next shell of this job does not try.
if [ -n "${SLURM_TASK_PID-}${2-}" ]; then
    ln -sfn "/proc/${SLURM_TASK_PID:-$2}" "$mark"
else
    rm -f "$mark"
fi
printf '%s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ) job $job on $(uname -n): ${said:-exit code $status}" |
    tail -c 1000 2>/dev/null >"${0%/*}/problem"
