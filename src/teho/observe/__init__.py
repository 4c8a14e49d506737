"""The supervisor of `teho run`, and the recorder that samples next to the program.

The supervisor and its recorders exchange JSON lines (`teho.process.json_lines`):

- To a recorder: `{"plan": …}`, or `{"orders": …}` to the recorders of a job's other nodes;
  `{"end": elapsed_s}` when the program has ended. If the pipe closes without this message, the
  supervisor was killed and the program may still run.
- From a recorder: `{"signal": number}` for each signal it got, which shows the supervisor that the
  whole group got the signal; `{"trouble": sentence, "elapsed_s": …}`; `{"released": true}` when it
  continues for other tasks of the node; `{"sealing": true}` when it has taken its last sample.
- From the recorders of a job's other nodes, each with its `node`: `{"place": directory, "shared":
  whether}` when it starts, troubles, and `{"sealed": whether}` when it has ended.
"""
