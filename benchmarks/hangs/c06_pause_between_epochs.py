"""TensorFlow: two short epochs with a pause of 90 s between them (licence server: one epoch per slot)."""
import os
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import tensorflow as tf  # noqa: E402

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)

PAUSE = 90.0
EPOCHS = 2
STEPS = 450


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.w1 = tf.Variable(tf.random.stateless_normal((32, 64), seed=(1, 2)) * 0.2)
        self.b1 = tf.Variable(tf.zeros(64))
        self.w2 = tf.Variable(tf.random.stateless_normal((64, 1), seed=(3, 4)) * 0.2)

    def __call__(self, x):
        return tf.nn.relu(x @ self.w1 + self.b1) @ self.w2


net = Net()


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((net(x) - y) ** 2)
    variables = [net.w1, net.b1, net.w2]
    for v, g in zip(variables, tape.gradient(loss, variables)):
        v.assign_sub(0.01 * g)
    return loss


def main():
    for epoch in range(EPOCHS):
        for step in range(STEPS):
            x = tf.random.stateless_normal((32, 32), seed=(epoch, step))
            loss = train_step(x, tf.reduce_sum(x, 1, keepdims=True))
            time.sleep(0.04)
            if step % 50 == 0:
                print(f"epoch {epoch} step {step} loss {float(loss):.4f}", flush=True)
        if epoch + 1 < EPOCHS:
            print(f"next slot in {PAUSE:.0f} s", flush=True)
            time.sleep(PAUSE)
    print("done")


if __name__ == "__main__":
    main()
