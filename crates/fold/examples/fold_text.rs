//! Folds the letters of each argument and prints the rules.
//!
//!     cargo run -p refrain-fold --example fold_text -- abcabcabcxyabcabcabcxy

use refrain_fold::grammar::{Folder, Symbol};

fn main() {
    let mut texts: Vec<String> = std::env::args().skip(1).collect();
    if texts.is_empty() {
        texts.push("to be or not to be or not to be or to be".to_string());
    }
    for text in texts {
        let mut folder = Folder::new();
        for letter in text.chars() {
            folder.push(letter.into());
        }
        let next = folder.predicted().and_then(char::from_u32);
        let grammar = folder.finish();
        println!("{text}: {} letters, {} items", grammar.len(), grammar.items());
        for (number, rule) in grammar.rules.iter().enumerate() {
            print!("  R{number} ->");
            for item in rule {
                match item.symbol {
                    Symbol::Terminal(letter) => print!(" {:?}", char::from_u32(letter).unwrap_or('?')),
                    Symbol::Rule(rule) => print!(" R{rule}"),
                }
                if item.count > 1 {
                    print!(" x{}", item.count);
                }
            }
            println!();
        }
        if let Some(next) = next {
            println!("  next, if it goes on like that: {next:?}");
        }
        let back: String = grammar.iter().filter_map(char::from_u32).collect();
        assert_eq!(back, text);
    }
}
