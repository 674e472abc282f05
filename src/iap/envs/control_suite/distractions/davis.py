"""The names of the videos of DAVIS-2017, in the standard order."""

_TRAINING = """
    bear bmx-bumps boat boxing-fisheye breakdance-flare bus car-turn cat-girl classic-car color-run crossing dance-jump
    dancing disc-jockey dog-agility dog-gooses dogs-scale drift-turn drone elephant flamingo hike hockey horsejump-low
    kid-football kite-walk koala lady-running lindy-hop longboard lucia mallard-fly mallard-water miami-surf
    motocross-bumps motorbike night-race paragliding planes-water rallye rhino rollerblade schoolgirls scooter-board
    scooter-gray sheep skate-park snowboard soccerball stroller stunt surf swing tennis tractor-sand train tuk-tuk
    upside-down varanus-cage walking
"""

_VALIDATION = """
    bike-packing blackswan bmx-trees breakdance camel car-roundabout car-shadow cows dance-twirl dog dogs-jump
    drift-chicane drift-straight goat gold-fish horsejump-high india judo kite-surf lab-coat libby loading mbike-trick
    motocross-jump paragliding-launch parkour pigs scooter-black shooting soapbox
"""

TRAINING, VALIDATION = tuple(_TRAINING.split()), tuple(_VALIDATION.split())

FRAMES = ("JPEGImages/480p", "JPEGImages/Full-Resolution")  # folders of the unpacked archive that contain the videos
