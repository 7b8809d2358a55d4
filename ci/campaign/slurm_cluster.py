"""A Dask cluster in a SLURM queue, for a campaign: prints the scheduler's address, and ends it all when it is ended.

pip install dask-jobqueue
python slurm_cluster.py --queue normal --jobs 4 --cores 16 &
lockstorm campaign nightly.toml --on tcp://THE.PRINTED.ADDRESS:PORT
"""

import argparse
import signal

from dask_jobqueue import SLURMCluster


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queue", help="Partition of SLURM. Default: the usual one.")
    parser.add_argument("--jobs", type=int, default=1, help="Number of jobs. Default: 1.")
    parser.add_argument("--cores", type=int, default=1, help="Cores of a job, each with a worker. Default: 1.")
    parser.add_argument("--memory", default="1GiB", help="Memory of a core. Default: 1GiB.")
    parser.add_argument("--walltime", default="08:00:00", help="Time limit of a job. Default: 08:00:00.")
    parser.add_argument("--interface", help="Network interface of the scheduler and the workers, as in ib0.")
    chosen = parser.parse_args()
    cluster = SLURMCluster(
        queue=chosen.queue,
        cores=chosen.cores,
        processes=chosen.cores,
        memory=f"{chosen.cores * int(chosen.memory.removesuffix('GiB'))}GiB",
        walltime=chosen.walltime,
        interface=chosen.interface,
    )
    cluster.scale(jobs=chosen.jobs)
    print(cluster.scheduler_address, flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        signal.pause()
    except KeyboardInterrupt:
        cluster.close()


if __name__ == "__main__":
    main()
