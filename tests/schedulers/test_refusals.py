"""What counts as a scheduler's no to a submission: only what certainly left no job behind."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.errors import RefusedError
from teho.schedulers.backend import Backend
from teho.schedulers.command import Completed
from teho.schedulers.grid_engine.backend import GridEngine
from teho.schedulers.local.backend import Local
from teho.schedulers.slurm.backend import Slurm

SLURM, ENGINE = Slurm(), GridEngine("user")
FAILED = "sbatch: error: Batch job submission failed: "


def refuses(backend: Backend, stderr: str, code: int = 1) -> bool:
    try:
        assert backend.read_submitted(Completed(("x",), code, "", stderr)) is None
    except RefusedError as error:
        return stderr.strip() in error.found
    return False


# As slurm_errno.c of 20.11 to 26.05 has them, where a submission can meet them.
NO_OF_SLURM = """\
Invalid partition name specified
No partition specified or system default partition
Access/permission denied
User's group not permitted to use this partition
Requested nodes not in this partition
More processors requested than permitted
Node count specification invalid
MaxJobCount limit reached
Job size specification needs to be provided
Invalid user id
Pathname of a file, directory or other parameter too long
Immediate execution impossible, insufficient priority
Requested node configuration is not available
Requested partition configuration not available now
Requested nodes are busy
Invalid node name specified
Task distribution specification invalid
Task count specification invalid
Invalid feature specification
Immediate execution impossible, resources too fragmented for allocation
Requested operation not supported on this system
Requested operation is presently disabled
Job dependency problem
Only batch jobs are accepted or processed
Licenses currently unavailable
Memory required by task is not available
Invalid account or account/partition combination specified
Invalid qos specification
Invalid wckey specification
Invalid license specification
Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)
Requested time limit is invalid (missing or exceeds some limit)
Access denied to requested reservation
Requested reservation is invalid
Invalid time specified
Job cannot be submitted without the current working directory specified.
Required node not available (down, drained or reserved)
CPU count specification invalid
Required partition not available (inactive or drain)
Circular job dependency
Invalid generic resource (gres) specification
Requested account has breached requested QOS usage threshold
Job can not start immediately
Invalid job array specification
Burst Buffer permission denied
Partition in DOWN state
Duplicate generic resource (gres) specification
System submissions disabled
Job --batch option is invalid or not a subset of --constraint
Invalid Trackable RESource (TRES) specification
Invalid GRES specification (with and without type identification)
Requested GRES option unsupported by configured SelectType plugin
Invalid --nice value
Cannot request more threads per core than the job allocation
Multiple partition job request not supported when a partition is set in the association
Invalid or unknown association
Time limit specification required, but not provided
RestrictedCoresPerGPU: No GPUs configured on node
Requested topology configuration is not available""".splitlines()

PERHAPS_OF_SLURM = """\
Unspecified error
Unexpected message received
Communication connection failure
Message send failure
Message receive failure
Communication shutdown failure
Incompatible versions of client and server code
Protocol authentication error
Insane message length
Can't find an address, check slurm.conf
Unexpected missing socket error
Read would block
Connection rejected by handler
Connection timed out reading
Kernel reported delayed socket error after successful write(), client side likely closed
Unable to contact slurm controller (connect failure)
Unable to contact slurm controller (receive failure)
Rate limit exceeded, please retry momentarily
Slurm backup controller in standby mode
Controller is in standby mode, try a different controller
Header lengths are longer than data received
Socket timed out on send/recv operation
Zero Bytes were transmitted or received
Received zero length message
Invalid authentication credential
Invalid job credential
Authentication credential expired
Cannot unpack credential
TLS missing but required for connection
Unable to connect to database
Invalid MPI plugin name
Required plugin type not loaded or initialized
a word of a Slurm to come""".splitlines()


@pytest.mark.parametrize("reason", NO_OF_SLURM)
def test_the_controller_s_no(reason):
    assert refuses(SLURM, f"{FAILED}{reason}\n")
    # A site's plugin, or the limit that was met, says more before.
    assert refuses(SLURM, f"sbatch: error: QOSMaxGRESPerJob\n{FAILED}{reason}\n")


@pytest.mark.parametrize("reason", PERHAPS_OF_SLURM)
def test_what_may_hide_a_job_on_slurm(reason):
    assert not refuses(SLURM, f"{FAILED}{reason}\n")


@given(st.sampled_from(sorted(errno.errorcode)), st.sampled_from(NO_OF_SLURM))
def test_an_error_of_the_connection_is_no_refusal(number, earlier):
    # Whatever was said before it.
    stderr = f"sbatch: error: {earlier}\n{FAILED}{os.strerror(number)}\n"
    assert not refuses(SLURM, stderr)
    for words in ("Unable to run job: {}.\nExiting.\n", "error: commlib error: {}\n"):
        assert not refuses(ENGINE, words.format(os.strerror(number)))


def test_the_damaged_answer_of_a_real_controller():
    assert not refuses(
        SLURM,
        "sbatch: error: slurm_unpack_received_msg: MESSAGE_TASK_EXIT has authentication error\n"
        "sbatch: error: slurm_receive_msgs: Protocol authentication error\n"
        f"{FAILED}Unspecified error\n",
    )


def test_a_no_to_a_second_attempt_says_nothing_of_the_first():
    limit = f"{FAILED}Job violates accounting/QOS policy (job submit limit)\n"
    assert refuses(SLURM, limit)
    assert not refuses(SLURM, f"sbatch: error: Socket timed out on send/recv operation\n{limit}")


# As sbatch 22.05 said them.
@pytest.mark.parametrize(
    ("stderr", "code"),
    [
        ("sbatch: unrecognized option '--foo'\nTry \"sbatch --help\" for more information\n", 255),
        ("sbatch: error: Invalid --time specification\n", 255),
        ('sbatch: error: Invalid numeric value "x" for --ntasks.\n', 1),
        ("sbatch: error: Unable to open file nothing.sh\n", 1),
        ("sbatch: error: Batch script is empty!\n", 1),
        ("sbatch: error: This does not look like a batch script.  The first\n", 1),
        ("sbatch: error: Batch script contains DOS line breaks (\\r\\n)\n", 1),
        ("sbatch: option '--gres' requires an argument\n", 255),
        ("sbatch: option '--tim' is ambiguous; possibilities: '--time' '--time-min'\n", 255),
        ("sbatch: error: Invalid generic resource (gres) specification\n", 1),
        ("sbatch: error: Maximum node count 1 is less than minimum node count 3\n", 255),
        ("sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.\n", 1),
        ('sbatch: fatal: my job.sh: line 2: Unmatched `"` in [ "3]\n', 1),
        ("sbatch: error: Bad rlimit name: x\nsbatch: error: --propagate=x is not valid.\n", 1),
        ("sbatch: fatal: Could not establish a configuration source\n", 1),
    ],
)
def test_sbatch_s_own_no_before_it_asks(stderr, code):
    assert refuses(SLURM, stderr, code)
    assert not refuses(SLURM, stderr, -signal.SIGKILL)


@pytest.mark.parametrize(
    ("stderr", "code"),
    [
        ('Unable to run job: unknown resource "coproc_k80"\nExiting.\n', 1),
        ("Unable to run job: error: no suitable queues\nExiting.\n", 1),
        ("Unable to run job: job rejected: no script in your request.\nExiting.\n", 1),
        ('Unable to run job: job rejected: the requested project "x" does not exist.\n', 1),
        ('Unable to run job: denied: host "x" is no submit host.\nExiting.\n', 1),
        ("Unable to run job: JSV rejected job.\nExiting.\n", 1),
        ('qsub: invalid option argument "-foo"\n', 2),
        ('qsub: Unknown option "-foo"\n', 1),
        ("qsub: ERROR! -t option must have a list of task id ranges\n", 1),
        ("Unable to read script file because of error: error opening nothing.sh: No such\n", 14),
    ],
)
def test_grid_engine_s_no(stderr, code):
    assert refuses(ENGINE, stderr, code)
    assert not refuses(ENGINE, stderr, -signal.SIGKILL)


@pytest.mark.parametrize(
    "stderr",
    [
        "error: commlib error: got read error (closing connection)",
        "Unable to run job: got NULL gdi response",
        "Unable to run job: failed receiving gdi request response for mid=1 (got read timeout).",
        'Unable to run job: unable to send message to qmaster using port 1 on host "a": got send',
        "Unable to run job: error unpacking gdi request: bad format",
        "Unable to run job: can't get communication handle",
        "Unable to run job: what a site's verifier says",
        # Grid Engine warns so, and takes the job all the same.
        'Unable to run job: warning: not allowed in any queue\nYour job 5 ("a") has been submitted',
        'denied: something\nYour job 5 ("job") has been submitted.\nExiting.',
    ],
)
def test_what_may_hide_a_job_on_grid_engine(stderr):
    assert not refuses(ENGINE, f"{stderr}\n")


@given(st.text(max_size=60), st.integers(-64, 255))
def test_unknown_words_are_no_refusal(words, code):
    assert not refuses(SLURM, words, code)
    assert not refuses(ENGINE, words, code)


@given(st.text(max_size=20), st.text(max_size=20), st.integers(-64, 0))
def test_a_command_that_did_not_fail_is_no_refusal(before, after, code):
    words = f"{before}\n{FAILED}Invalid partition name specified\n{after}"
    assert not refuses(SLURM, words, code)
    assert not refuses(ENGINE, "Unable to run job: denied: no.\nExiting.\n", code)


def test_a_runner_that_was_killed_may_have_started_its_job(tmp_path: Path):
    assert not refuses(Local(tmp_path), "", -signal.SIGKILL)
    assert refuses(Local(tmp_path), "script /nowhere does not exist\n")
