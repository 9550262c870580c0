//! Point-to-point, collectives, communicators and a derived datatype through the `mpi` crate.

use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::datatype::{UserDatatype, View};
use mpi::point_to_point as p2p;
use mpi::topology::Color;
use mpi::traits::*;

fn main() {
    let (universe, _) = mpi::initialize_with_threading(Threading::Multiple).expect("MPI starts");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let (right, left) = (world.process_at_rank((rank + 1) % size), world.process_at_rank((rank + size - 1) % size));

    for step in 0..3 {
        let outbox = vec![f64::from(rank); step + 1];
        let mut inbox = vec![0.0; step + 1];
        mpi::request::scope(|scope| {
            let sent = right.immediate_send_with_tag(scope, &outbox[..], 7);
            let received = left.immediate_receive_into_with_tag(scope, &mut inbox[..], 7);
            received.wait();
            sent.wait();
        });
        assert_eq!(inbox[step] as i32, left.rank());
    }
    let (number, status): (i32, _) = p2p::send_receive(&rank, &right, &left);
    assert_eq!((number, status.source_rank()), (left.rank(), left.rank()));

    let mut sum = 0i64;
    world.all_reduce_into(&i64::from(rank), &mut sum, SystemOperation::sum());
    assert_eq!(sum, i64::from(size * (size - 1) / 2));
    let mut everybody = vec![0u8; size as usize];
    world.all_gather_into(&(rank as u8), &mut everybody[..]);
    let mut word = if rank == 0 { *b"root" } else { [0; 4] };
    world.process_at_rank(0).broadcast_into(&mut word);
    assert_eq!((&word, everybody[size as usize - 1]), (b"root", size as u8 - 1));
    world.barrier();

    let half = world.split_by_color_with_key(Color::with_value(rank % 2), -rank).expect("everybody is in one");
    let mut least = 0i32;
    half.all_reduce_into(&rank, &mut least, SystemOperation::min());
    assert_eq!(least, rank % 2);

    let column = UserDatatype::vector(3, 1, 2, &f64::equivalent_datatype());
    let numbers = [1.0f64, 2.0, 3.0, 4.0, 5.0];
    let mut others = [0.0f64; 3];
    // SAFETY: one column is three doubles out of five, which are there.
    let view = unsafe { View::with_count_and_datatype(&numbers, 1, &column) };
    p2p::send_receive_into(&view, &right, &mut others[..], &left);
    assert_eq!(others, [1.0, 3.0, 5.0]);
    if rank == 0 {
        println!("all done");
    }
}
