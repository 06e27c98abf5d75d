import pg from 'pg';
import type { MessageAnswer, Reply, ResultColumn, TextRow } from './answer.ts';

/** What is used of the driver's connection. */
interface Wire {
  readonly stream: { readonly writable: boolean; write(bytes: Buffer): unknown };
  sendCopyFail(reason: string): void;
  sync(): void;
}

/** What the driver says about a column. */
interface Field {
  readonly name: string;
  readonly dataTypeID: number;
}

/**
 * One message to the server and all answers up to its next readiness. The driver takes it for one
 * of its queries: it keeps the order of what is sent and answered, reads the messages and watches
 * the time; what a query of the driver does besides, once for every statement, costs more than what
 * we need of it.
 */
export class Exchange extends pg.Query {
  readonly #message: Buffer;
  readonly #replies: Reply[] = [];
  #rows: TextRow[] = [];
  #columns: readonly ResultColumn[] | undefined;
  readonly answer: Promise<MessageAnswer>;
  /** The driver puts its own in front, in order to stop its clock. */
  callback: (error: unknown) => void;

  constructor(message: Buffer) {
    super('');
    this.#message = message;
    const { promise, resolve } = Promise.withResolvers<MessageAnswer>();
    this.answer = promise;
    this.callback = (error) => {
      const replies = this.#replies;
      resolve(error == null ? { replies } : { replies, failure: { error } });
    };
    this.submit = (connection) => {
      const { stream } = connection as unknown as Wire;
      if (stream.writable) stream.write(this.#message);
    };
  }

  handleRowDescription({ fields }: { readonly fields: readonly Field[] }): void {
    this.#columns = fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID }));
  }

  handleDataRow({ fields }: { readonly fields: TextRow }): void {
    this.#rows.push(fields);
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    this.#reply(/^[A-Za-z]*/.exec(text)?.[0] ?? '');
  }

  /** There are more rows than were asked for. */
  handlePortalSuspended(): void {
    this.#reply('SUSPENDED');
  }

  handleEmptyQuery(): void {
    this.#reply('');
  }

  /**
   * While it expects rows the server overlooks a Sync, and takes any other statement for the end of
   * the session.
   */
  handleCopyInResponse(connection: Wire): void {
    connection.sendCopyFail('there is nothing to copy from');
    connection.sync();
  }

  handleCopyData(): void {}

  handleError(error: unknown): void {
    this.callback(error);
  }

  handleReadyForQuery(): void {
    this.callback(undefined);
  }

  #reply(command: string): void {
    const columns = this.#columns;
    this.#replies.push({ command, rows: this.#rows, ...(columns && { columns }) });
    this.#rows = [];
    this.#columns = undefined;
  }
}
