//! The tables of the paper (Johnson, Ha and Zaidi, "Lossless Trace Compression"), byte for byte.

use crate::common;

use common::{read, write};
use refrain_addresses::{Dictionary, Fields, Format, Options, Reference};

const PDATS_HEADER: usize = 16;
const PDI_HEADER: usize = 8 + 4 * 256;

/// Lines of kind, address and maybe more, in hexadecimal.
fn parse(text: &str) -> Vec<(u8, u64, u32)> {
    let number = |word: Option<&str>| u64::from_str_radix(word.unwrap_or("0"), 16).unwrap();
    text.lines()
        .map(str::split_whitespace)
        .map(|mut words| (number(words.next()) as u8, number(words.next()), number(words.next()) as u32))
        .collect()
}

const TABLE_2: &str = "\
2 430d70\n2 430d74\n2 415130\n0 1000acac\n2 415134\n2 415138\n2 41513c\n2 415140\n2 430c20\n2 430c24\n1 7fff00ac\n\
2 430c28\n1 7fff00a8\n2 430c2c\n1 7fff00a4\n2 430c30\n1 7fff009c\n2 430c34\n1 7fff00a0\n2 430c38\n1 7fff0098\n\
2 430c3c\n2 430c40\n2 430c44\n2 430c48\n2 430c4c\n2 430c50\n2 430c54\n2 430c58\n1 7fff00b4\n";

#[test]
fn table_2() {
    let references: Vec<Reference> = parse(TABLE_2)
        .into_iter()
        .map(|(kind, address, _)| Reference { kind, address, ..Reference::default() })
        .collect();
    let bytes = write(&references, Fields::NONE, Format::Pdats, &Options::default()).unwrap();
    // Each line is one of the table's: type, address code and repeat in the header byte, then repeat count and offset.
    let records: [&[u8]; 20] = [
        &[0x62, 0x70, 0x0d, 0x43, 0x00], // 2  430d70
        &[0x02],                         // 2  4
        &[0x62, 0xbc, 0x43, 0xfe, 0xff], // 2  -1bc44
        &[0x60, 0xac, 0xac, 0x00, 0x10], // 0  1000acac
        &[0x82, 3],                      // 2  4, 3 more
        &[0x62, 0xe0, 0xba, 0x01, 0x00], // 2  1bae0
        &[0x02],                         // 2  4
        &[0x61, 0xac, 0x00, 0xff, 0x7f], // 1  7fff00ac
        &[0x02],                         // 2  4
        &[0x21, 0xfc],                   // 1  -4
        &[0x02],                         // 2  4
        &[0x21, 0xfc],                   // 1  -4
        &[0x02],                         // 2  4
        &[0x21, 0xf8],                   // 1  -8
        &[0x02],                         // 2  4
        &[0x01],                         // 1  4
        &[0x02],                         // 2  4
        &[0x21, 0xf8],                   // 1  -8
        &[0x82, 7],                      // 2  4, 7 more
        &[0x21, 0x1c],                   // 1  1c
    ];
    assert_eq!(bytes[PDATS_HEADER..], records.concat());
    assert_eq!(read(&bytes, Format::Pdats).0, references);
}

/// The record that says of a second reference of a kind: so much further, so much later.
#[track_caller]
fn table_3_record(kind: u8, offset: i64, time: u64, repeats: usize, expected: &[u8]) {
    let fields = Fields { times: true, ..Fields::NONE };
    let mut references = vec![Reference { kind, address: 0x8000_0000, time: 0, ..Reference::default() }];
    for i in 1..=1 + repeats as u64 {
        let address = 0x8000_0000u64.wrapping_add((i as i64 * offset) as u64);
        references.push(Reference { kind, address, time: i * time, ..Reference::default() });
    }
    let bytes = write(&references, fields, Format::Pdats, &Options::default()).unwrap();
    let first = 5;
    assert_eq!(&bytes[PDATS_HEADER + first..], expected, "kind {kind} offset {offset} time {time}");
    assert_eq!(read(&bytes, Format::Pdats).0, references);
}

#[test]
fn table_3() {
    // Type, bits 2 to 0.
    for kind in 0..8 {
        table_3_record(kind, 4, 0, 0, &[kind]);
    }
    // Time stamp code, bits 4 and 3.
    table_3_record(2, 4, 1, 0, &[0x0a]);
    table_3_record(2, 4, 2, 0, &[0x12, 2]);
    table_3_record(2, 4, 255, 0, &[0x12, 255]);
    table_3_record(2, 4, 256, 0, &[0x1a, 0, 1]);
    table_3_record(2, 4, 65_535, 0, &[0x1a, 255, 255]);
    table_3_record(2, 4, 65_536, 0, &[0x1a, 0, 0]);
    // Address code, bits 6 and 5.
    table_3_record(0, -128, 0, 0, &[0x20, 0x80]);
    table_3_record(0, 127, 0, 0, &[0x20, 0x7f]);
    table_3_record(0, -129, 0, 0, &[0x40, 0x7f, 0xff]);
    table_3_record(0, 128, 0, 0, &[0x40, 0x80, 0]);
    table_3_record(0, -32_769, 0, 0, &[0x60, 0xff, 0x7f, 0xff, 0xff]);
    table_3_record(0, 32_768, 0, 0, &[0x60, 0, 0x80, 0, 0]);
    // Repeat, bit 7; the count follows the header byte. All at once is the longest record, of eight bytes.
    table_3_record(2, 4, 1, 1, &[0x8a, 1]);
    table_3_record(7, -40_000, 300, 255, &[0xff, 255, 0xc0, 0x63, 0xff, 0xff, 0x2c, 0x01]);
    table_3_record(2, 4, 0, 257, &[0x82, 255, 0x82, 1]);
}

/// The stack addresses have a digit too many in print (7ffeabc64); the offset 6ffe82b0 that the table gives for the last
/// of them says that they are 7ffebc64 and 7ffebc60.
const TABLE_12: &str = "\
2 400190 8fa40000\n0 7ffebc64 0\n2 400194 3c1c1001\n2 400198 279cac50\n2 40019c 27a50004\n2 4001a0 af858d68\n\
1 100039b8 0\n2 4001a4 24a60004\n2 4001a8 41080\n2 4001ac af808d6c\n1 100039bc 0\n2 4001b0 00c23021\n\
2 4001b4 27bdffe8\n2 4001b8 af868d60\n1 100039b0 0\n2 4001bc afa00014\n1 7ffebc60 0\n2 4001c0 0c101570\n\
2 4001c4 af848d64\n2 4055c0 27bdfe60\n2 4055c4 afa401a0\n";

#[test]
fn table_12() {
    let fields = Fields { words: true, ..Fields::NONE };
    let references: Vec<Reference> = parse(TABLE_12)
        .into_iter()
        .map(|(kind, address, word)| Reference { kind, address, word, ..Reference::default() })
        .collect();
    // The dictionary is that of the whole trace; the table shows these places of it.
    let mut dictionary = Dictionary { words: std::array::from_fn(|at| 0xdead_0000 + at as u32) };
    for (at, word) in [
        (0x00, 0x8fa4_0000),
        (0x01, 0x3c1c_1001),
        (0x02, 0x27bd_ffe8),
        (0x03, 0x279c_ac50),
        (0x04, 0x27a5_0004),
        (0x05, 0xaf80_8d6c),
        (0x06, 0x0004_1080),
        (0x09, 0x24a6_0004),
        (0x0c, 0xaf85_8d68),
        (0x0d, 0xaf86_8d60),
        (0x3c, 0xafa4_01a0),
        (0x50, 0x27bd_fe60),
        (0x64, 0xaf84_8d64),
        (0xc8, 0x0c10_1570),
    ] {
        dictionary.words[at] = word;
    }
    let options = Options { dictionary, ..Options::default() };
    let bytes = write(&references, fields, Format::Pdi, &options).unwrap();
    let records: [&[u8]; 21] = [
        &[0x6a, 0x90, 0x01, 0x40, 0x00, 0x00], // 2  400190    0
        &[0x60, 0x64, 0xbc, 0xfe, 0x7f],       // 0  7ffebc64
        &[0x0a, 0x01],                         // 2  4         1
        &[0x0a, 0x03],                         // 2  4         3
        &[0x0a, 0x04],                         // 2  4         4
        &[0x0a, 0x0c],                         // 2  4         c
        &[0x61, 0xb8, 0x39, 0x00, 0x10],       // 1  100039b8
        &[0x0a, 0x09],                         // 2  4         9
        &[0x0a, 0x06],                         // 2  4         6
        &[0x0a, 0x05],                         // 2  4         5
        &[0x01],                               // 1  4
        &[0x12, 0x21, 0x30, 0xc2, 0x00],       // 2  4         00c23021
        &[0x0a, 0x02],                         // 2  4         2
        &[0x0a, 0x0d],                         // 2  4         d
        &[0x21, 0xf4],                         // 1  -c
        &[0x12, 0x14, 0x00, 0xa0, 0xaf],       // 2  4         afa00014
        &[0x61, 0xb0, 0x82, 0xfe, 0x6f],       // 1  6ffe82b0
        &[0x0a, 0xc8],                         // 2  4         c8
        &[0x0a, 0x64],                         // 2  4         64
        &[0x4a, 0xfc, 0x53, 0x50],             // 2  53fc      50
        &[0x0a, 0x3c],                         // 2  4         3c
    ];
    assert_eq!(bytes[PDI_HEADER..], records.concat());
    assert_eq!(read(&bytes, Format::Pdi).0, references);
}
