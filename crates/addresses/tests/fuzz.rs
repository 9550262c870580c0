//! A few of the inputs that `scripts/fuzz` tries for as long as one likes.

use crate::mutants;

use refrain_addresses::Format;

#[test]
fn no_input_makes_a_decoder_panic() {
    for format in Format::ALL {
        let mut fuzz = mutants::Fuzz::new(format);
        let all = crate::rounds(300);
        let rounds: Vec<(u64, bool)> = (0..all).map(|number| fuzz.round(number)).collect();
        let refused = rounds.iter().filter(|(_, refused)| *refused).count();
        let read: u64 = rounds.iter().map(|(read, _)| read).sum();
        println!("{}: {refused} refused, {read} references", format.name());
        // Some are damaged, and of most something is read.
        assert!(refused > 0 && read > all, "{}: {refused} {read}", format.name());
    }
}

#[test]
fn no_compressed_input_makes_a_decoder_panic() {
    for compression in mutants::COMPRESSIONS {
        let all = crate::rounds(600);
        let rounds: Vec<(u64, bool)> =
            (0..all).map(|number| mutants::compressed_round(compression, number)).collect();
        let refused = rounds.iter().filter(|(_, refused)| *refused).count();
        let read: u64 = rounds.iter().map(|(read, _)| read).sum();
        println!("{compression:?}: {refused} refused, {read} references");
        assert!(refused as u64 > all / 6 && read > all, "{compression:?}: {refused} {read}");
    }
}
