"""A subscriber to a feed by ZeroMQ alone: what it is sent, and no client's code in between."""

import struct

import zmq

PATIENCE_S = 30


def feed_of(place, name="echelle"):
    return f"ipc://{place.runtime}/echelle/{name}/feed"


def subscriber(endpoint, *topics, queue=100_000):
    made = zmq.Context.instance().socket(zmq.SUB)
    made.set(zmq.LINGER, 0)
    made.set(zmq.RCVHWM, queue)
    made.set(zmq.RCVTIMEO, PATIENCE_S * 1000)
    made.connect(endpoint)
    for topic in topics:
        made.subscribe(topic)
    return made


def receive_until(made, topic):
    """All messages up to the first of this topic, which is the last of them."""
    messages = []
    while not messages or messages[-1][0] != topic:
        messages.append(made.recv_multipart())
    return messages


def sequence_of(packet):
    return struct.unpack_from(">Q", packet, len(packet) - 112 + 8)[0]
