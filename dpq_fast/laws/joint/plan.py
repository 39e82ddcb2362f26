"""What a release of JointExp costs: all choices that decide it, and nothing that decides its law.

One frozen `Plan` is handed to whatever chooses, so that a test or a benchmark tries others. What is
part of a proof stands elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """All choices but those of `fft`. Entries are cells or ranks of all rows.

    Those of one paragraph belong together; the comment before it says what they are for.
    """

    # Rows of single ranks (`PathLaw`) where they have few entries; more where rows are short, as
    # rows of cells take as long however few records there are.
    few_entries: int = 2**17
    short_row: int = 2**12
    short_entries: int = 15 * 2**16
    # And where cells would have fewer ranks than that; or where blocks would be of a record each,
    # of more than that, and windows have no more ranks than that on each side.
    least_ranks: float = 2.5
    most_records: int = 3 * 2**20
    most_narrow: int = 10 * 2**10

    # The guess at the reach: by how many nats less than twice 1/c ranks most paths deviate at one
    # level, and how many it has to spare. The kernel of few records has the same.
    typical_saving: float = 1.6
    guess_margin: float = 0.9
    # Rows of single ranks. Up to so many entries, nothing is read to find out where paths are.
    # Windows inside of the reach are worth their certificate if they save so many entries; at first
    # they have so many nats more than it asks of evenly spread records.
    small_entries: int = 512
    worth: int = 2**13
    spare: float = 20.0
    # Cells outside of windows lose such a share of what paths pay to be there, and there are no
    # more than so many on one side of a target.
    lost_beyond: float = 0.75
    most_strayed: int = 2**19
    # Up to so many ranks, or entries, are held at once; of more, and of blocks, about so many are
    # looked at, at a time.
    most_held: int = 2**22
    at_once: int = 2**16

    # A few records, whose law is one call of a kernel: no more than so many, nor row entries
    # inside of windows; and no more entries of all ranks than that. From so many on, those around
    # targets alone are laid out, as if intervals had so many nats less each.
    most_few: int = 2**17
    few_room: int = 2**20
    least_held: int = 1500
    held_farther: float = 8.0
    # Of so many entries of all ranks at most, what is outside of windows weighs so many nats less
    # than what is inside: a draw that is decided there takes all rows 2m times. Of more, windows
    # have the certificate of `PathLaw`.
    light_spare: float = 10.0
    light_entries: int = 2**14

    # What all steps may lose by cells, in nats; more of more levels than that, whose rows are long,
    # up to so many times as much. A step loses that for each squared nat of a cell, as measured,
    # where targets are apart, and where they are crowded: the second is over their gap.
    loss: float = 3.5
    few_levels: int = 256
    more_lost: float = 4.0
    apart: float = 0.16
    crowded: float = 0.06
    # More for each nat that a path pays to be farther away, but less where targets are so close
    # that several outputs are likely to share a cell: by nats between.
    farther: float = 1.0 / 24.0
    farther_each: float = 0.005
    # Cells are so much narrower and wider, by so many steps, as fits between targets.
    aligned: tuple[float, float, int] = (0.9, 1.1, 64)
    # No cell of several leaves has so many nats; those at targets have a little more than asked, as
    # not all of one width have as many ranks.
    widest: float = 64.0
    margin: float = 1.05
    # A leaf that holds more than all else within so many nats stays alone.
    around: float = 1.0
    # Leaves whose blocks are not kept are halved while that leaves them so many times as many ranks
    # as blocks have, and while there are no more leaves than that.
    blocks_each: int = 8
    most_leaves: int = 2**18

    # Where ties that are not dithered send paths anywhere, cells have `widest` nats at first, or
    # less, and at least so many, where signs in doubt would lose more nats than that. Blocks of
    # many records have so many nats there, and no more than so many are made.
    least_tied: float = 8.0
    tied_loss: float = 4.0
    tied_block: float = 1.0
    most_tied: int = 2**22

    # What all bends may lose by blocks, in nats: the first that makes no more blocks than that, or
    # than so many for each pair of levels where blocks are made only when they are drawn.
    bends: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0)
    most_blocks: int = 2**19
    most_parts: int = 300
    # And for each nat from where paths are: of dithered records, so many standard deviations of a
    # bridge from their targets. A block has no more nats than that.
    bends_farther: float = 0.9
    spread: float = 1.5
    widest_block: float = 8.0
    # Shorter blocks would be of a record each and cost more than these do, which are read: up to so
    # many. Blocks of dithered records that an order scans have a record or more, which may lose
    # that.
    least_block: int = 4
    most_read: int = 2**20
    most_scanned: float = 8.0

    # Proposals at once: for each draw, and where their ranks take a pass over the records, or rows
    # are computed once more for them; and at most so many outputs.
    each: int = 4
    each_scan: int = 16
    most_outputs: int = 2**18
    # Cells become narrower where proposals without an accepted one have cost such a share of what
    # others would (an output costs as much as so many entries or blocks), and likely so many are to
    # come that others cost less; as often as that, and if rows have no more entries than that.
    spent: float = 0.1
    output_cost: float = 16.0
    rounds: int = 6
    most_entries: int = 2**24
    # By these factors, where paths are and in how much they grow elsewhere; so many paths show
    # where.
    less_nats: float = 0.6
    less_growth: float = 0.25
    visitors: int = 32
    # So many proposals, and `PathLaw` draws, if its rows have no more entries than that; else
    # proposals go on as far as minutes.
    most_tries: int = 2**14
    most_single: int = 2**26
    last_try: int = 2**19


PLAN = Plan()
