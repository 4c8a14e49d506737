import os
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf

tf.random.set_seed(0)
VOCAB = 300


class Gen(tf.Module):
    def __init__(self):
        self.emb = tf.Variable(tf.random.normal([VOCAB, 64], stddev=0.1))
        self.layers = [(tf.Variable(tf.random.normal([64, 64], stddev=0.1)),
                        tf.Variable(tf.random.normal([64, 64], stddev=0.1)),
                        tf.Variable(tf.random.normal([64, 64], stddev=0.1))) for _ in range(4)]
        self.out = tf.Variable(tf.random.normal([64, VOCAB], stddev=0.1))

    @tf.function
    def next_token(self, tokens, pos, temperature):
        h = tf.gather(self.emb, tokens)
        for q, k, v in self.layers:
            att = tf.nn.softmax(tf.matmul(h @ q, h @ k, transpose_b=True) / 8.0)
            h = h + att @ (h @ v)
        logits = h[pos][None] @ self.out / temperature
        return tf.random.categorical(logits, 1)[0, 0]


gen = Gen()
for poem in range(8):
    toks = tf.Variable(tf.zeros([64], tf.int64))
    temp = 0.5 + 0.05 * poem
    for pos in range(63):
        nxt = gen.next_token(toks, tf.constant(pos), tf.constant(temp))
        toks[pos + 1].assign(nxt)
    print(poem, toks.numpy()[:12], flush=True)
