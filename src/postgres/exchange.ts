import pg from 'pg';
import type { MessageAnswer, Reply, ResultColumn, TextRow } from './answer.ts';

/** The parts of the driver's connection that we use. */
interface Wire {
  readonly stream: { readonly writable: boolean; write(bytes: Buffer): unknown };
  sendCopyFail(reason: string): void;
  sync(): void;
}

/** A column as the driver describes it. */
interface Field {
  readonly name: string;
  readonly dataTypeID: number;
}

/**
 * One message to the server, and all answers until the server is ready again. It poses as one of
 * the driver's queries, so that the driver keeps the order, parses the answers and enforces the
 * timeout. The driver's own queries do more for each statement, and that costs more than the parts
 * we use.
 */
export class Exchange extends pg.Query {
  readonly #message: Buffer;
  readonly #replies: Reply[] = [];
  #rows: TextRow[] = [];
  #columns: readonly ResultColumn[] | undefined;
  readonly answer: Promise<MessageAnswer>;
  /** Ends the exchange, with an error if there was one. Ends it only once. */
  callback: (error: unknown) => void;

  /** Leaves `unanswered` when it ends. */
  constructor(message: Buffer, unanswered: { delete(exchange: Exchange): unknown }) {
    super('');
    this.#message = message;
    const { promise, resolve } = Promise.withResolvers<MessageAnswer>();
    this.answer = promise;
    this.callback = (error) => {
      const replies = this.#replies;
      unanswered.delete(this);
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

  /** The server stopped at `maxRows`. There may be more rows. */
  handlePortalSuspended(): void {
    this.#reply('SUSPENDED');
  }

  handleEmptyQuery(): void {
    this.#reply('');
  }

  /**
   * While the server waits for COPY data it ignores a Sync, and any other statement ends the
   * session.
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
