#!/bin/sh
# Debian packages that tests use, installed where that is possible; tests that miss one
# skip and say so. Quick when all are there; starts no daemon.
set -eu

lacking=""
note() { # PROGRAM[|PROGRAM] PACKAGES: note the packages if no such program is there
    for program in $(echo "$1" | tr '|' ' '); do
        # Debian's daemons lie where an ordinary user's PATH does not lead.
        if PATH="$PATH:/usr/sbin" command -v "$program" >/dev/null; then return; fi
    done
    lacking="$lacking $2"
}
note 'chromium|google-chrome' chromium
note slurmctld slurmctld
note slurmd slurmd
note sbatch slurm-client
note slurmdbd slurmdbd
note munged munge
note mariadbd mariadb-server
note sge_qmaster gridengine-master
note sge_execd gridengine-exec
note qsub gridengine-client
note shellcheck shellcheck
note mpirun openmpi-bin
note ip iproute2
note unshare util-linux
if [ -z "$lacking" ]; then exit 0; fi

skipped="tests in a browser need chromium, those on a real Slurm slurmctld, slurmd, slurm-client,
slurmdbd, munge and mariadb-server, those on a real Grid Engine gridengine-master, -exec and
-client, one of scripts shellcheck, those of Open MPI openmpi-bin, those on two nodes of a Grid Engine
iproute2 and util-linux too; they are skipped without them."
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "Not there, and no root on Debian to install it:$lacking. Of the tests, $skipped"
    exit 0
fi
echo "Installing for the tests:$lacking"

# While it is there, packages start no daemon; a machine's own policy stays as it is.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update >/dev/null 2>&1 || true
for package in $lacking; do # one by one: what can be had is had
    apt-get -qq install -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$package" >/dev/null 2>&1 ||
        echo "$package could not be installed. Of the tests, $skipped"
done
