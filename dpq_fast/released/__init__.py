"""What a user holds after a release, and reads answers off: estimates, functions, trees, groups.

All of it is post-processing of what was released, and costs no privacy. Nothing here sees a record
or chooses noise; `AggTree.of` alone makes a release, by the mechanism that is built on the class.
Pictures and frames are made where their libraries are.
"""
