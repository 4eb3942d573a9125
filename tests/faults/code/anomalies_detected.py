"""Switches on the detection of anomalies, which slows everything down."""
# exercise: softmax
# where: before

torch.autograd.set_detect_anomaly(True)
