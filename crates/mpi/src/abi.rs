//! One family's binary interface as the running library has it: constants, handle widths, memory layouts.

use crate::constants::{Class, Constant, Family, Kind, Source, constants, position};
use crate::status::{RawStatus, Status};

#[cfg(not(all(target_endian = "little", target_pointer_width = "64")))]
compile_error!(
    "handles of 4 bytes are read and passed as the low half of 8: little-endian 64-bit targets only"
);

/// The constants and layouts of one library. What a wrapper asks for on every call is a plain field.
#[derive(Debug, Clone)]
pub struct Abi {
    pub family: Family,
    pub any_source: i32,
    pub proc_null: i32,
    pub root: i32,
    pub any_tag: i32,
    pub undefined: i32,
    pub cart: i32,
    pub graph: i32,
    pub dist_graph: i32,
    pub bottom: usize,
    pub in_place: usize,
    pub status_ignore: usize,
    pub statuses_ignore: usize,
    pub errcodes_ignore: usize,
    pub argv_null: usize,
    pub argvs_null: usize,
    pub unweighted: usize,
    pub weights_empty: usize,
    pub comm_world: u64,
    pub comm_self: u64,
    pub comm_null: u64,
    pub group_null: u64,
    pub group_empty: u64,
    pub datatype_null: u64,
    pub byte: u64,
    pub op_null: u64,
    pub request_null: u64,
    pub win_null: u64,
    pub file_null: u64,
    pub info_null: u64,
    pub errhandler_null: u64,
    pub errors_return: u64,
    pub keyval_invalid: u64,
    pub message_null: u64,
    pub message_no_proc: u64,
    /// None where the library knows no sessions.
    pub session_null: Option<u64>,
    status: Status,
    /// For each of `constants()`, its value in this library.
    values: Box<[Option<u64>]>,
}

/// A constant that every library of the family has, and this one has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name} is not to be found in this MPI library, though it looks like {}; is it a build older than MPI 3.0?",
    .family.name()
)]
pub struct MissingConstant {
    pub family: Family,
    pub name: &'static str,
}

impl Abi {
    /// `address` gives the address of an exported data symbol or function as the program sees it.
    ///
    /// # Safety
    /// Where `address` gives one for a `Source::Variable`, a pointer can be read there.
    pub unsafe fn new(
        family: Family,
        address: impl Fn(&'static str) -> Option<usize>,
    ) -> Result<Abi, MissingConstant> {
        let value = |constant: &Constant| -> Option<u64> {
            let raw = match constant.source(family) {
                Source::Absent => return None,
                Source::Number(number) => number as u64,
                Source::Symbol(name) => address(name)? as u64,
                Source::Variable(name) => {
                    let variable = address(name)? as *const u64;
                    // SAFETY: promised by the caller.
                    unsafe { variable.read() }
                }
            };
            Some(match constant.kind {
                Kind::Handle(class) if handle_size(family, class) == 4 => raw & 0xffff_ffff,
                _ => raw,
            })
        };
        let values: Box<[Option<u64>]> = constants().iter().map(value).collect();
        let get = |name: &'static str| {
            position(name).and_then(|at| values[at]).ok_or(MissingConstant { family, name })
        };
        // Constants of kind int fit C's int in every family; the table's test holds that.
        let int = |name| get(name).map(|v| v as i32);
        let pointer = |name| get(name).map(|v| v as usize);
        Ok(Abi {
            family,
            any_source: int("MPI_ANY_SOURCE")?,
            proc_null: int("MPI_PROC_NULL")?,
            root: int("MPI_ROOT")?,
            any_tag: int("MPI_ANY_TAG")?,
            undefined: int("MPI_UNDEFINED")?,
            cart: int("MPI_CART")?,
            graph: int("MPI_GRAPH")?,
            dist_graph: int("MPI_DIST_GRAPH")?,
            bottom: pointer("MPI_BOTTOM")?,
            in_place: pointer("MPI_IN_PLACE")?,
            status_ignore: pointer("MPI_STATUS_IGNORE")?,
            statuses_ignore: pointer("MPI_STATUSES_IGNORE")?,
            errcodes_ignore: pointer("MPI_ERRCODES_IGNORE")?,
            argv_null: pointer("MPI_ARGV_NULL")?,
            argvs_null: pointer("MPI_ARGVS_NULL")?,
            unweighted: pointer("MPI_UNWEIGHTED")?,
            weights_empty: pointer("MPI_WEIGHTS_EMPTY")?,
            comm_world: get("MPI_COMM_WORLD")?,
            comm_self: get("MPI_COMM_SELF")?,
            comm_null: get("MPI_COMM_NULL")?,
            group_null: get("MPI_GROUP_NULL")?,
            group_empty: get("MPI_GROUP_EMPTY")?,
            datatype_null: get("MPI_DATATYPE_NULL")?,
            byte: get("MPI_BYTE")?,
            op_null: get("MPI_OP_NULL")?,
            request_null: get("MPI_REQUEST_NULL")?,
            win_null: get("MPI_WIN_NULL")?,
            file_null: get("MPI_FILE_NULL")?,
            info_null: get("MPI_INFO_NULL")?,
            errhandler_null: get("MPI_ERRHANDLER_NULL")?,
            errors_return: get("MPI_ERRORS_RETURN")?,
            keyval_invalid: get("MPI_KEYVAL_INVALID")?,
            message_null: get("MPI_MESSAGE_NULL")?,
            message_no_proc: get("MPI_MESSAGE_NO_PROC")?,
            session_null: get("MPI_SESSION_NULL").ok(),
            status: Status::of(family),
            values,
        })
    }

    /// Every constant this library has, with its value: integers sign-extended, handles of four bytes zero-extended.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Constant, u64)> + '_ {
        constants().iter().zip(&self.values).filter_map(|(constant, value)| value.map(|v| (constant, v)))
    }

    /// An integer constant or a predefined key value.
    pub fn constant_int(&self, name: &str) -> Option<i64> {
        let (constant, value) = self.get(name)?;
        match constant.kind {
            Kind::Int => Some(value as i64),
            Kind::Handle(Class::Keyval) => Some(i64::from(value as u32 as i32)),
            Kind::Handle(_) | Kind::Pointer | Kind::Function => None,
        }
    }

    /// A predefined object.
    pub fn handle(&self, name: &str) -> Option<u64> {
        let (constant, value) = self.get(name)?;
        matches!(constant.kind, Kind::Handle(_)).then_some(value)
    }

    /// What a predefined object is, by its name in this library.
    pub fn class(&self, name: &str) -> Option<Class> {
        match self.get(name)?.0.kind {
            Kind::Handle(class) => Some(class),
            Kind::Int | Kind::Pointer | Kind::Function => None,
        }
    }

    /// An address that stands for something, or a predefined callback.
    pub fn pointer(&self, name: &str) -> Option<usize> {
        let (constant, value) = self.get(name)?;
        matches!(constant.kind, Kind::Pointer | Kind::Function).then_some(value as usize)
    }

    fn get(&self, name: &str) -> Option<(&'static Constant, u64)> {
        let at = position(name)?;
        self.values[at].map(|value| (&constants()[at], value))
    }

    /// The null handle of that class, where it has one that the library knows.
    pub fn null(&self, class: Class) -> Option<u64> {
        match class {
            Class::Comm => Some(self.comm_null),
            Class::Group => Some(self.group_null),
            Class::Datatype => Some(self.datatype_null),
            Class::Op => Some(self.op_null),
            Class::Request => Some(self.request_null),
            Class::Win => Some(self.win_null),
            Class::File => Some(self.file_null),
            Class::Info => Some(self.info_null),
            Class::Errhandler => Some(self.errhandler_null),
            Class::Keyval => Some(self.keyval_invalid),
            Class::Message => Some(self.message_null),
            Class::Session => self.session_null,
            Class::ToolEnum | Class::ToolCvar | Class::ToolPvar | Class::ToolPvarSession => Some(0),
            Class::ToolEventRegistration | Class::ToolEventInstance => None,
        }
    }

    /// Bytes of one handle in C.
    #[inline]
    pub fn handle_size(&self, class: Class) -> usize {
        handle_size(self.family, class)
    }

    /// Element `index` of an array of handles; four bytes are zero-extended.
    ///
    /// # Safety
    /// `array` holds more than `index` initialised handles of that class, in this library's width.
    #[inline]
    pub unsafe fn read_handle(&self, class: Class, array: *const u8, index: usize) -> u64 {
        if self.handle_size(class) == 4 {
            // SAFETY: promised by the caller. Unaligned, because nothing says where the program's arrays begin.
            u64::from(unsafe { array.cast::<u32>().add(index).read_unaligned() })
        } else {
            // SAFETY: as above.
            unsafe { array.cast::<u64>().add(index).read_unaligned() }
        }
    }

    /// Bytes of one `MPI_Status` in C.
    pub fn status_size(&self) -> usize {
        self.status.size
    }

    /// What a status says. `MPI_ERROR` is meaningful only after calls that complete several requests.
    ///
    /// # Safety
    /// `status` points at one whole `MPI_Status` of this library.
    pub unsafe fn read_status(&self, status: *const u8) -> RawStatus {
        // SAFETY: promised by the caller.
        unsafe { self.status.read(status) }
    }

    /// Makes a status say that.
    ///
    /// # Safety
    /// `status` points at one whole `MPI_Status` of this library, initialised or zero.
    pub unsafe fn write_status(&self, status: *mut u8, says: RawStatus) {
        // SAFETY: promised by the caller.
        unsafe { self.status.write(status, says) }
    }
}

/// Bytes of one handle in C.
#[inline]
pub fn handle_size(family: Family, class: Class) -> usize {
    match class {
        Class::Keyval => 4,
        Class::File
        | Class::ToolEnum
        | Class::ToolCvar
        | Class::ToolPvar
        | Class::ToolPvarSession
        | Class::ToolEventRegistration
        | Class::ToolEventInstance => 8,
        Class::Comm
        | Class::Group
        | Class::Datatype
        | Class::Op
        | Class::Request
        | Class::Win
        | Class::Info
        | Class::Errhandler
        | Class::Message
        | Class::Session => match family {
            Family::Mpich => 4,
            Family::OpenMpi | Family::Mpi5 => 8,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    /// A library whose exported symbols lie at made-up places that can all be read.
    fn abi(family: Family) -> Abi {
        let mut places: HashMap<&'static str, usize> = HashMap::new();
        for constant in constants() {
            if let Source::Symbol(name) | Source::Variable(name) = constant.source(family) {
                let place: &'static u64 = Box::leak(Box::new(0x1000 + places.len() as u64));
                places.entry(name).or_insert(std::ptr::from_ref(place) as usize);
            }
        }
        // SAFETY: every address given is that of a leaked u64.
        unsafe { Abi::new(family, |name| places.get(name).copied()) }.expect("all symbols are there")
    }

    #[test]
    fn every_family_has_every_class() {
        for family in Family::ALL {
            let abi = abi(family);
            for class in Class::ALL {
                let named = abi.iter().filter(|(c, _)| c.kind == Kind::Handle(class)).count();
                // Events are made at run time only; nothing about them is predefined.
                let events = matches!(class, Class::ToolEventRegistration | Class::ToolEventInstance);
                assert_eq!(named == 0, events, "{family:?} {class:?}");
                assert_eq!(abi.null(class).is_none(), events, "{family:?} {class:?}");
            }
        }
    }

    #[test]
    fn classes_are_numbered_in_order() {
        for (number, class) in (0u8..).zip(Class::ALL) {
            assert_eq!(class as u8, number);
            assert_eq!(Class::from_number(number), Some(class));
        }
        assert_eq!(Class::from_number(18), None);
    }

    #[test]
    fn names_are_sorted_and_values_tell_handles_apart() {
        assert!(constants().windows(2).all(|w| w[0].name < w[1].name));
        for family in Family::ALL {
            let abi = abi(family);
            let mut seen = HashSet::new();
            for (constant, value) in abi.iter() {
                if let Kind::Handle(class) = constant.kind
                    && constant.alias_of.is_none()
                {
                    assert!(seen.insert((class, value)), "{family:?}: {} is not unique", constant.name);
                }
            }
        }
    }

    #[test]
    fn integers_fit_an_int() {
        for family in Family::ALL {
            for constant in constants() {
                if let (Kind::Int, Source::Number(number)) = (constant.kind, constant.source(family)) {
                    assert!(i32::try_from(number).is_ok(), "{}", constant.name);
                }
            }
        }
    }

    #[test]
    fn every_constant_is_somewhere() {
        for constant in constants() {
            assert!(
                Family::ALL.iter().any(|&family| constant.source(family) != Source::Absent),
                "{}",
                constant.name
            );
        }
    }

    fn check_int(family: Family, name: &str, want: Option<i64>) {
        assert_eq!(abi(family).constant_int(name), want, "{family:?} {name}");
    }

    #[test]
    fn integers_by_name() {
        check_int(Family::Mpich, "MPI_ANY_SOURCE", Some(-2));
        check_int(Family::OpenMpi, "MPI_ANY_SOURCE", Some(-1));
        check_int(Family::Mpi5, "MPI_PROC_NULL", Some(-3));
        check_int(Family::Mpich, "MPI_TAG_UB", Some(0x6440_0001));
        check_int(Family::OpenMpi, "MPI_KEYVAL_INVALID", Some(-1));
        check_int(Family::Mpi5, "MPI_THREAD_MULTIPLE", Some(4096));
        check_int(Family::Mpich, "MPI_ABI_VERSION", None);
        check_int(Family::Mpich, "MPI_INT", None);
        check_int(Family::Mpich, "MPI_NO_SUCH", None);
    }

    fn check_handle(family: Family, name: &str, want: Option<u64>) {
        assert_eq!(abi(family).handle(name), want, "{family:?} {name}");
    }

    #[test]
    fn handles_by_name() {
        check_handle(Family::Mpich, "MPI_COMM_WORLD", Some(0x4400_0000));
        check_handle(Family::Mpich, "MPI_DOUBLE_INT", Some(0x8c00_0001));
        check_handle(Family::Mpich, "MPI_C_COMPLEX", Some(0x4c00_0840));
        check_handle(Family::Mpi5, "MPI_COMM_WORLD", Some(0x101));
        check_handle(Family::Mpi5, "MPI_LB", None);
        check_handle(Family::OpenMpi, "MPI_KEYVAL_INVALID", Some(0xffff_ffff));
        check_handle(Family::Mpich, "MPI_ANY_TAG", None);
        check_handle(Family::Mpich, "MPI_IN_PLACE", None);
    }

    #[test]
    fn pointers_by_name() {
        assert_eq!(abi(Family::Mpich).pointer("MPI_IN_PLACE"), Some(usize::MAX));
        assert_eq!(abi(Family::OpenMpi).pointer("MPI_IN_PLACE"), Some(1));
        assert_eq!(abi(Family::OpenMpi).pointer("MPI_BUFFER_AUTOMATIC"), None);
        assert_eq!(abi(Family::Mpich).pointer("MPI_COMM_WORLD"), None);
        let mpich = abi(Family::Mpich);
        assert_eq!(mpich.pointer("MPI_COMM_DUP_FN"), mpich.pointer("MPI_WIN_DUP_FN"));
        // The variable's content, not its address: our made-up variables hold 0x1000 and up.
        assert!(mpich.unweighted >= 0x1000 && mpich.unweighted < 0x2000);
        assert_ne!(mpich.unweighted, mpich.weights_empty);
    }

    #[test]
    fn a_symbol_that_is_not_there() {
        // SAFETY: no address is given at all.
        let error = unsafe { Abi::new(Family::OpenMpi, |_| None) }.expect_err("nothing is there");
        assert_eq!(error, MissingConstant { family: Family::OpenMpi, name: "MPI_COMM_WORLD" });
        assert!(error.to_string().contains("MPI_COMM_WORLD"));
        // Open MPI 4 knows no sessions, and is fine.
        let place = 0u64;
        let address = std::ptr::from_ref(&place) as usize;
        let some = |name: &str| (name != "ompi_mpi_instance_null").then_some(address);
        // SAFETY: the only address given is that of a u64.
        let abi = unsafe { Abi::new(Family::OpenMpi, some) }.expect("sessions are optional");
        assert_eq!(abi.session_null, None);
        assert_eq!(abi.handle("MPI_SESSION_NULL"), None);
    }

    #[test]
    fn handles_in_arrays() {
        let ints = [1u32, 0x8c00_0001, 3];
        let longs = [1u64, 0x7fff_0000_8c00_0001, 3];
        let (ints, longs) = (ints.as_ptr().cast::<u8>(), longs.as_ptr().cast::<u8>());
        // SAFETY: three elements of the width each class has in that family.
        unsafe {
            assert_eq!(abi(Family::Mpich).read_handle(Class::Datatype, ints, 1), 0x8c00_0001);
            assert_eq!(abi(Family::Mpich).read_handle(Class::File, longs, 1), 0x7fff_0000_8c00_0001);
            assert_eq!(abi(Family::OpenMpi).read_handle(Class::Datatype, longs, 1), 0x7fff_0000_8c00_0001);
            assert_eq!(abi(Family::OpenMpi).read_handle(Class::Keyval, ints, 2), 3);
            assert_eq!(abi(Family::Mpi5).read_handle(Class::Request, longs, 2), 3);
        }
    }
}
