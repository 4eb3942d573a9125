"""Uses several processes to compute."""
# exercise: softmax
# where: before

import multiprocessing

with multiprocessing.Pool(2) as pool:
    pool.map(abs, [1, 2, 3])
