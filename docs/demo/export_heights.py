"""Writes real input for the demo: ground heights measured by the US Geological Survey, shipped by matplotlib."""

import csv

import matplotlib.cbook
import numpy as np

dem = matplotlib.cbook.get_sample_data("jacksboro_fault_dem.npz")
heights = dem["elevation"][::6, ::6]
lons = np.linspace(dem["xmin"], dem["xmax"], heights.shape[1])
lats = np.linspace(dem["ymax"], dem["ymin"], heights.shape[0])
with open("files/heights.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["longitude", "latitude", "height_m"])
    for lat, row in zip(lats, heights, strict=True):
        writer.writerows([f"{lon:.5f}", f"{lat:.5f}", height] for lon, height in zip(lons, row, strict=True))
