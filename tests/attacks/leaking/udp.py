"""Sends packets that wait for no answer."""
# exercise: softmax
# where: answer

import socket

try:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as packet:
        packet.sendto(b"attack-was-here", ("127.0.0.1", UDP_PORT))
        packet.sendto(b"attack-was-here", ("255.255.255.255", UDP_PORT))
except OSError:
    pass
