#!/usr/bin/env python3
"""picture.png: three balls on a chequered floor, with the noise of a camera; traced by rays, 240 by 180.

    make_picture.py FILE.png
"""
import struct
import sys
import zlib

import numpy as np

BALLS = [((-1.1, 0.8, 4.2), 0.8, (0.9, 0.25, 0.2)), ((0.7, 1.0, 5.2), 1.0, (0.2, 0.45, 0.9)), ((0.45, 0.35, 3.1), 0.35, (0.95, 0.8, 0.25))]
LIGHT = np.array([-0.5, 0.8, -0.4]) / np.linalg.norm([-0.5, 0.8, -0.4])


def hit(origin, way, ball):
    """How far a ball is along rays; inf: missed."""
    centre, radius, _ = ball
    to = np.asarray(centre) - origin
    along = (to * way).sum(-1)
    rest = radius**2 - (to * to).sum(-1) + along**2
    near = along - np.sqrt(np.maximum(rest, 0))
    return np.where((rest > 0) & (near > 1e-4), near, np.inf)


def trace(origin, way, depth=2):
    floor = np.where(way[..., 1] < 0, -origin[..., 1] / np.minimum(way[..., 1], -1e-9), np.inf)
    far = np.stack([floor] + [hit(origin, way, b) for b in BALLS])
    which, t = far.argmin(0), far.min(0)
    sky = np.array([0.55, 0.7, 0.95]) + np.array([0.4, 0.25, 0.05]) * (1 - np.clip(way[..., 1:2], 0, 1)) ** 4
    colour = sky
    place = origin + way * np.where(np.isfinite(t), t, 0)[..., None]
    for i in range(len(BALLS) + 1):
        if i == 0:
            normal = np.broadcast_to([0.0, 1, 0], place.shape)
            base = np.where(((np.floor(place[..., 0]) + np.floor(place[..., 2])) % 2 == 0)[..., None], 0.85, 0.3) * np.ones(3)
        else:
            normal = (place - np.asarray(BALLS[i - 1][0])) / BALLS[i - 1][1]
            base = np.broadcast_to(BALLS[i - 1][2], place.shape)
        start = place + 1e-3 * normal
        shadow = np.min([hit(start, LIGHT, b) for b in BALLS], 0) < np.inf
        lit = np.clip((normal * LIGHT).sum(-1), 0, 1) * ~shadow
        shaded = base * (0.35 + 0.65 * lit)[..., None]
        if depth and i:
            mirror = way - 2 * (way * normal).sum(-1, keepdims=True) * normal
            shaded = 0.8 * shaded + 0.2 * trace(start, mirror, depth - 1) + (lit * np.clip((mirror * LIGHT).sum(-1), 0, 1) ** 60)[..., None]
        colour = np.where(((which == i) & np.isfinite(t))[..., None], shaded, colour)
    fog = np.where(np.isfinite(t), 1 - np.exp(-0.02 * np.minimum(t, 1e3)), 0)[..., None]
    return colour * (1 - fog) + sky * fog


def write_png(path, pixels):
    h, w, _ = pixels.shape
    # each row as differences from the one above, which compresses well
    above = np.concatenate([np.zeros((1, w, 3), np.uint8), pixels[:-1]])
    rows = np.concatenate([np.full((h, 1), 2, np.uint8), (pixels - above).reshape(h, -1)], 1)
    parts = [(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts))


def main(path, width=240, height=180):
    y, x = np.mgrid[0:3 * height, 0:3 * width]  # nine rays a pixel
    way = np.stack([(x + 0.5) / (3 * height) - width / height / 2, 0.42 - (y + 0.5) / (3 * height), np.full(x.shape, 1.0)], -1)
    way /= np.linalg.norm(way, axis=-1, keepdims=True)
    colour = trace(np.broadcast_to([0.0, 1.1, -0.4], way.shape), way)
    colour = np.clip(colour, 0, 1).reshape(height, 3, width, 3, 3).mean((1, 3)) ** (1 / 1.3)
    noise = np.random.default_rng(1).normal(0, 0.007, (height, width, 1))
    write_png(path, np.round(np.clip(colour + noise, 0, 1) * 255).astype(np.uint8))


if __name__ == "__main__":
    main(*sys.argv[1:])
