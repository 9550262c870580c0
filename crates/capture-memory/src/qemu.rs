//! QEMU's interface for plugins, version 1, as QEMU 7.2 has it: our own declarations of the functions that are used here.
//!
//! They are looked up by name when the plugin is installed, so that one that is missing is an error that names it.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// What the plugin is called in every call.
pub type Id = u64;

/// A block that is being translated.
#[repr(C)]
pub struct Tb(c_void);

/// An instruction of it.
#[repr(C)]
pub struct Insn(c_void);

/// What [`Functions::on_mem`] is asked for: loads and stores.
pub const READ_WRITE: c_int = 3;
/// A callback that looks at no register.
pub const NO_REGISTERS: c_int = 0;

pub type OnVcpu = unsafe extern "C" fn(Id, c_uint);
pub type OnTranslation = unsafe extern "C" fn(Id, *mut Tb);
pub type OnMemory = unsafe extern "C" fn(c_uint, u32, u64, *mut c_void);
pub type OnInsn = unsafe extern "C" fn(c_uint, *mut c_void);
pub type OnSyscall = unsafe extern "C" fn(Id, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
pub type OnExit = unsafe extern "C" fn(Id, *mut c_void);

/// The beginning of what QEMU tells of itself.
#[repr(C)]
pub struct Info {
    pub target: *const c_char,
    pub least_version: c_int,
    pub version: c_int,
    pub is_system: bool,
}

/// What QEMU offers.
#[derive(Debug, Clone, Copy)]
pub struct Functions {
    pub register_vcpu_init: unsafe extern "C" fn(Id, OnVcpu),
    pub register_vcpu_exit: unsafe extern "C" fn(Id, OnVcpu),
    pub register_translation: unsafe extern "C" fn(Id, OnTranslation),
    pub register_syscall: unsafe extern "C" fn(Id, OnSyscall),
    pub register_exit: unsafe extern "C" fn(Id, OnExit, *mut c_void),
    pub on_mem: unsafe extern "C" fn(*mut Insn, OnMemory, c_int, c_int, *mut c_void),
    pub on_insn: unsafe extern "C" fn(*mut Insn, OnInsn, c_int, *mut c_void),
    pub tb_len: unsafe extern "C" fn(*const Tb) -> usize,
    pub tb_insn: unsafe extern "C" fn(*const Tb, usize) -> *mut Insn,
    pub insn_data: unsafe extern "C" fn(*const Insn) -> *const c_void,
    pub insn_size: unsafe extern "C" fn(*const Insn) -> usize,
    pub insn_address: unsafe extern "C" fn(*const Insn) -> u64,
    /// Where it lies in the emulator's own memory.
    pub insn_host: unsafe extern "C" fn(*const Insn) -> *const c_void,
    /// Of an access: the logarithm of its size.
    pub size_shift: unsafe extern "C" fn(u32) -> c_uint,
    pub is_store: unsafe extern "C" fn(u32) -> bool,
}

/// The address of an exported function of the process.
fn address(name: &'static CStr) -> Result<*mut c_void, &'static CStr> {
    // SAFETY: the name is a terminated string; the handle stands for all that is loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() { Err(name) } else { Ok(found) }
}

macro_rules! function {
    ($name:literal) => {
        // SAFETY: QEMU's function of that name has this type in version 1 of its interface.
        unsafe { std::mem::transmute::<*mut c_void, _>(address($name)?) }
    };
}

impl Functions {
    /// An error is the name of the function that QEMU lacks.
    // The fields say the types.
    #[allow(clippy::missing_transmute_annotations)]
    pub fn find() -> Result<Functions, &'static CStr> {
        let found = Functions {
            register_vcpu_init: function!(c"qemu_plugin_register_vcpu_init_cb"),
            register_vcpu_exit: function!(c"qemu_plugin_register_vcpu_exit_cb"),
            register_translation: function!(c"qemu_plugin_register_vcpu_tb_trans_cb"),
            register_syscall: function!(c"qemu_plugin_register_vcpu_syscall_cb"),
            register_exit: function!(c"qemu_plugin_register_atexit_cb"),
            on_mem: function!(c"qemu_plugin_register_vcpu_mem_cb"),
            on_insn: function!(c"qemu_plugin_register_vcpu_insn_exec_cb"),
            tb_len: function!(c"qemu_plugin_tb_n_insns"),
            tb_insn: function!(c"qemu_plugin_tb_get_insn"),
            insn_data: function!(c"qemu_plugin_insn_data"),
            insn_size: function!(c"qemu_plugin_insn_size"),
            insn_address: function!(c"qemu_plugin_insn_vaddr"),
            insn_host: function!(c"qemu_plugin_insn_haddr"),
            size_shift: function!(c"qemu_plugin_mem_size_shift"),
            is_store: function!(c"qemu_plugin_mem_is_store"),
        };
        Ok(*FUNCTIONS.get_or_init(|| found))
    }
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// The size of an access, and whether it stores.
pub fn meaning(info: u32) -> (u32, bool) {
    match FUNCTIONS.get() {
        // SAFETY: `info` is what QEMU said of an access.
        Some(functions) => unsafe { (1 << (functions.size_shift)(info), (functions.is_store)(info)) },
        None => (8, false),
    }
}
