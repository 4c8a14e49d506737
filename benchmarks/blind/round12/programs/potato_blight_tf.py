"""Distil a large potato blight model into a field model with annealed soft targets."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf

STAGES = 6
STEPS = 400
BATCH = 32


def leaflets(count, rng):
    stage = rng.integers(0, STAGES, size=count)
    x = rng.normal(0.4, 0.12, size=(count, 28, 28, 3)).astype(np.float32)
    for i, s in enumerate(stage):
        for _ in range(2 * s):
            r, c = rng.integers(2, 24, size=2)
            x[i, r:r + 4, c:c + 4] *= np.array([0.6, 0.4, 0.5], np.float32)
    soft = np.exp(-0.8 * (np.arange(STAGES)[None] - stage[:, None]) ** 2).astype(np.float32)
    return x, stage.astype(np.int32), np.log(soft + 1e-6)


def field_model():
    return tf.keras.Sequential([
        tf.keras.Input((28, 28, 3)),
        tf.keras.layers.Conv2D(24, 3, padding="same", activation="relu"),
        tf.keras.layers.Conv2D(24, 3, strides=2, padding="same", activation="relu"),
        tf.keras.layers.Conv2D(48, 3, padding="same", activation="relu"),
        tf.keras.layers.Conv2D(48, 3, strides=2, padding="same", activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(STAGES),
    ])


def main():
    rng = np.random.default_rng(12)
    tf.keras.utils.set_random_seed(12)
    x, stage, teacher = leaflets(3000, rng)
    model = field_model()
    opt = tf.keras.optimizers.Adam(2e-3)
    opt.build(model.trainable_variables)
    hard = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def distil(xb, sb, tb, temperature):
        with tf.GradientTape() as tape:
            logits = model(xb, training=True)
            soft_target = tf.nn.softmax(tb / temperature)
            soft_loss = tf.nn.softmax_cross_entropy_with_logits(soft_target, logits / temperature)
            loss = hard(sb, logits) + temperature ** 2 * tf.reduce_mean(soft_loss)
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    xs, ss, ts = tf.constant(x), tf.constant(stage), tf.constant(teacher)
    for step in range(STEPS):
        pick = rng.integers(0, len(x), size=BATCH)
        temperature = 1.0 + 3.0 * 0.96 ** (step // 8)
        loss = distil(tf.gather(xs, pick), tf.gather(ss, pick), tf.gather(ts, pick),
                      temperature)
        if step % 80 == 79:
            print(f"step {step + 1} temperature {temperature:.3f} loss {float(loss):.4f}")
    found = tf.argmax(model(xs[:600]), axis=1).numpy()
    print(f"stage found on {np.mean(found == stage[:600]):.3f} of the leaflets")


if __name__ == "__main__":
    main()
